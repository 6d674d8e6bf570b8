package phrase

import "testing"

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Size(1023), "1023 bytes"}, {Size(1024), "1.0 kB"}, {Size(1 << 20), "1.0 MB"}, {Size(1<<20 - 1), "1024.0 kB"}, {Size(1 << 30), "1.0 GB"}, {Size(3 << 29), "1.5 GB"},
		{Count1(1, "event"), "1 event"}, {Count1(0, "event"), "0 events"}, {Count1(1536, "kernel"), "1,536 kernels"}, {Count1(2, "batch"), "2 batches"},
		{Thousands(999), "999"}, {Thousands(1000), "1,000"}, {Thousands(-1000), "-1,000"}, {Thousands(-999), "-999"}, {Thousands(1234567), "1,234,567"},
		{PerStepCount(2), "2"}, {PerStepCount(2.25), "2.2"}, {PerStepCount(9.96), "10.0"}, {PerStepCount(10.6), "11"}, {PerStepCount(1535.5), "1,536"},
		{Percent(0.099), "9.9 %"}, {Percent(0.1), "10 %"}, {Percent(0.304), "30 %"},
		{CountFew(1, "time"), "1 time"}, {CountFew(1.5, "time"), "1.5 times"}, {CountFew(2, "fetch"), "2 fetches"},
		{Printable("a\tb"), "a b"}, {Printable("a\x7fb"), "a b"}, {Printable("zürich"), "zürich"}, {Printable("a\u202eb"), "a b"}, {Printable("a\xffb"), "a b"}, {Printable("plain"), "plain"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
