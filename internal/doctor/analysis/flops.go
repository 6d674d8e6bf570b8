package analysis

import (
	"fmt"
	"strings"

	"haul/internal/doctor/trace"
)

// This file computes an operator's work from its shapes. Unknown values are left out: a convolution
// without recorded strides has no FLOPs, a list of tensors no bytes.

// opWork is the work of one call of an operator.
type opWork struct {
	flops, bytes float64
	products     bool // it multiplies matrices, so without FLOPs its bound is unknown
}

// shapes reads the inputs of a form.
type shapes struct{ *trace.Form }

func (f shapes) dims(i int) []int64 {
	if i < len(f.Inputs) {
		return f.Inputs[i].Dims
	}
	return nil
}

func (f shapes) size(i int) float64 {
	if i < len(f.Inputs) {
		return f.Inputs[i].Elements()
	}
	return 0
}

// back returns a dimension of an input, counted from its last (1), or 0 if it has fewer.
func (f shapes) back(i, n int) float64 {
	d := f.dims(i)
	if len(d) < n {
		return 0
	}
	return float64(d[len(d)-n])
}

// workOf returns the work of an operator. FLOPs are the multiplications and additions of matrix
// products; other operators have none. Bytes are its inputs and its result, once each.
func workOf(name string, form *trace.Form) opWork {
	f := shapes{form}
	var w opWork
	var largest float64
	for _, in := range f.Inputs {
		b := in.Elements() * float64(in.Width)
		w.bytes, largest = w.bytes+b, max(largest, b)
	}
	width := float64(widthOf(form))
	product := func(rows, depth, columns float64) {
		w.products = true
		w.flops = 2 * rows * depth * columns
		w.bytes += rows * columns * width
	}
	switch plain := strings.TrimSuffix(name, "_"); {
	case plain == "aten::linear": // [.., in] by [out, in]
		product(f.size(0)/max(1, f.back(1, 1)), f.back(1, 1), f.back(1, 2))
	case plain == "aten::mm", plain == "aten::matmul", plain == "aten::bmm":
		columns := 1.0
		if len(f.dims(1)) > 1 {
			columns = f.back(1, 1)
		}
		product(f.size(0)/max(1, f.back(0, 1)), f.back(0, 1), columns)
	case plain == "aten::addmm", plain == "aten::baddbmm":
		product(f.size(1)/max(1, f.back(1, 1)), f.back(1, 1), f.back(2, 1))
	case plain == "aten::conv1d", plain == "aten::conv2d", plain == "aten::conv3d", plain == "aten::convolution", plain == "aten::_convolution",
		strings.HasSuffix(plain, "convolution_backward"): // also of cuDNN and MIOpen, in old traces
		w.convolution(plain, f, width)
	case strings.Contains(plain, "scaled_dot_product"):
		w.attention(plain, f, width)
	case !reduces(plain):
		w.bytes += largest // a result of the size of the largest input
	}
	return w
}

// reduces reports whether the operator's result is small compared with its input.
func reduces(name string) bool {
	switch name {
	case "aten::sum", "aten::mean", "aten::amax", "aten::amin", "aten::argmax", "aten::argmin", "aten::max", "aten::min", "aten::norm", "aten::linalg_vector_norm",
		"aten::var", "aten::std", "aten::var_mean", "aten::all", "aten::any", "aten::item", "aten::is_nonzero", "aten::equal", "aten::nll_loss", "aten::cross_entropy_loss",
		"aten::mse_loss":
		return true
	}
	return false
}

// convolution counts a convolution's products: each element of the result takes one weight per
// input channel of its group and per element of the filter. Backward runs one such product for the
// input's gradient and one for the weights'.
func (w *opWork) convolution(name string, f shapes, width float64) {
	w.products = true
	if strings.HasSuffix(name, "_backward") { // the result's gradient, input, weights
		result, input := 0, 1
		if name != "aten::convolution_backward" {
			result, input = 1, 0
		}
		wanted := 2.0
		if mask := f.Value(10); mask != "" {
			first, rest, _ := strings.Cut(strings.Trim(mask, "[]"), ",")
			second, _, _ := strings.Cut(rest, ",")
			wanted = 0
			for _, m := range []string{first, second} {
				if strings.TrimSpace(m) == "True" {
					wanted++
				}
			}
		}
		side := f.size(result)
		if f.Value(7) == "True" && result == 0 { // transposed: input and output channels are exchanged
			side = f.size(input)
		}
		if d := f.dims(2); len(d) > 1 && d[0] > 0 {
			w.flops = wanted * 2 * side * f.size(2) / float64(d[0])
			w.bytes += f.size(input)*width + f.size(2)*width
		}
		return
	}
	in, filter := f.dims(0), f.dims(1)
	if len(in) < 3 || len(in) != len(filter) || filter[0] <= 0 {
		return
	}
	if strings.HasSuffix(name, "convolution") && f.Value(6) == "True" { // transposed
		w.flops = 2 * f.size(0) * f.size(1) / float64(filter[0])
		return
	}
	stride, padding, dilation := f.Numbers(3), f.Numbers(4), f.Numbers(5)
	at := func(list []int64, i int) (int64, bool) {
		switch {
		case len(list) == len(in)-2:
			return list[i], true
		case len(list) == 1:
			return list[0], true
		}
		return 0, false
	}
	out := float64(in[0]) * float64(filter[0])
	for i := range in[2:] {
		s, known := at(stride, i)
		p, padded := at(padding, i)
		d, spread := at(dilation, i)
		if !known || !padded || !spread || s <= 0 {
			return
		}
		out *= float64(max(0, (in[i+2]+2*p-d*(filter[i+2]-1)-1)/s+1))
	}
	w.flops = 2 * out * f.size(1) / float64(filter[0])
	w.bytes += out * width
}

// attention counts the two products of a fused attention, and the five of its backward, which
// recomputes the scores. A causal mask halves them.
func (w *opWork) attention(name string, f shapes, width float64) {
	w.products = true
	first, products, causal := 0, 2.0, 5 // index of the queries
	if strings.HasSuffix(name, "_backward") {
		first, products, causal = 1, 5, 11
	}
	switch {
	case name == "aten::_scaled_dot_product_flash_attention":
		causal = 4
	case name == "aten::_scaled_dot_product_cudnn_attention_backward":
		causal = 14
	case strings.HasPrefix(name, "aten::_scaled_dot_product") && first == 0:
		causal = 6
	}
	w.flops = products * 2 * f.size(first) * f.back(first+1, 2)
	if f.Value(causal) == "True" {
		w.flops /= 2
	}
	w.bytes += f.size(first) * width
	if first == 1 {
		w.bytes += 2 * f.size(2) * width
	}
}

// widthOf returns the element size of the first tensor.
func widthOf(f *trace.Form) int {
	for _, in := range f.Inputs {
		if in.Width > 0 {
			return in.Width
		}
	}
	return 0
}

// peaks are a GPU's limits in its data sheet: TFLOP/s without sparsity, GB/s.
type peaks struct{ fp64, fp32, half, bandwidth float64 }

func (p peaks) flops(width int) float64 {
	switch width {
	case 1, 2:
		return p.half
	case 4:
		return p.fp32
	case 8:
		return p.fp64
	}
	return 0
}

// peaks returns the peaks of the first GPU, or zero if they are unknown. fp32 is the rate of tf32
// or of the vendor's own reduced format, since a name does not show which of them is enabled.
func (a *Analysis) peaks() peaks {
	if len(a.GPUModels) == 0 {
		return peaks{}
	}
	name := strings.ToUpper(a.GPUModels[0].Name)
	for _, c := range []struct {
		word string
		peaks
	}{
		{"B200", peaks{40, 1125, 2250, 8000}}, {"H200", peaks{67, 495, 990, 4800}}, {"H100 PCIE", peaks{51, 378, 756, 2000}}, {"H100", peaks{67, 495, 990, 3350}},
		{"A100", peaks{19.5, 156, 312, 2039}}, {"V100", peaks{7.8, 15.7, 125, 900}}, {"MI300X", peaks{163, 654, 1307, 5300}}, {"MI250", peaks{45, 45, 181, 1600}},
		{"L40", peaks{1.4, 90, 181, 864}}, {"A10", peaks{0.5, 62, 125, 600}},
	} {
		if strings.Contains(name, c.word) {
			return c.peaks
		}
	}
	return peaks{}
}

// shapesOf returns the first shapes of a form as text.
func shapesOf(f *trace.Form) string {
	var parts []string
	for _, in := range f.Inputs {
		if len(in.Dims) == 0 {
			continue
		}
		var dims []string
		for _, d := range in.Dims {
			dims = append(dims, fmt.Sprint(d))
		}
		if parts = append(parts, strings.Join(dims, "x")); len(parts) == 3 {
			break
		}
	}
	return strings.Join(parts, ", ")
}
