package files

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"haul/internal/vrp"
)

// WriteXLSX writes a problem as a spreadsheet: sheets of customers, vehicles, shipments, matrices
// and settings.
func WriteXLSX(w io.Writer, p *vrp.Problem) error {
	all, err := sheetsOf(p)
	if err != nil {
		return err
	}
	return writeSheets(w, all)
}

// writeSheets writes tables as a spreadsheet, the first row of each in bold and fixed.
func writeSheets(w io.Writer, all []outSheet) error {
	z := zip.NewWriter(w)
	const head = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	const main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
	const rel = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	var types, sheets, links strings.Builder
	for i, s := range all {
		fmt.Fprintf(&types, `<Override PartName="/xl/worksheets/sheet%d.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>`, i+1)
		fmt.Fprintf(&sheets, `<sheet name="%s" sheetId="%d" r:id="rId%d"/>`, escaped(s.title), i+1, i+1)
		fmt.Fprintf(&links, `<Relationship Id="rId%d" Type="%s/worksheet" Target="worksheets/sheet%d.xml"/>`, i+1, rel, i+1)
	}
	parts := [][2]string{
		{"[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
			`<Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>` +
			`<Override PartName="/xl/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/>` + types.String() + `</Types>`},
		{"_rels/.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="` + rel + `/officeDocument" Target="xl/workbook.xml"/></Relationships>`},
		{"xl/workbook.xml", `<workbook xmlns="` + main + `" xmlns:r="` + rel + `"><sheets>` + sheets.String() + `</sheets></workbook>`},
		{"xl/_rels/workbook.xml.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` + links.String() +
			fmt.Sprintf(`<Relationship Id="rId%d" Type="%s/styles" Target="styles.xml"/></Relationships>`, len(all)+1, rel)},
		{"xl/styles.xml", `<styleSheet xmlns="` + main + `"><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font></fonts>` +
			`<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border/></borders>` +
			`<cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="2"><xf/><xf fontId="1" applyFont="1"/></cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>`},
	}
	for _, part := range parts {
		f, err := z.Create(part[0])
		if err != nil {
			return err
		}
		if _, err := io.WriteString(f, head+part[1]); err != nil {
			return err
		}
	}
	for i, s := range all {
		f, err := z.Create(fmt.Sprintf("xl/worksheets/sheet%d.xml", i+1))
		if err != nil {
			return err
		}
		var b bytes.Buffer
		b.WriteString(head + `<worksheet xmlns="` + main + `"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><sheetData>`)
		for r, row := range s.rows {
			fmt.Fprintf(&b, `<row r="%d">`, r+1)
			for c, cell := range row {
				writeCell(&b, c, r+1, cell, r == 0)
			}
			b.WriteString("</row>")
		}
		b.WriteString(`</sheetData></worksheet>`)
		if _, err := f.Write(b.Bytes()); err != nil {
			return err
		}
	}
	return z.Close()
}

// mostDigits is how long an integer may be that a spreadsheet keeps whole: of a longer one it shows
// zeros behind the fifteenth digit, and saves them.
const mostDigits = 15

// isNumber says whether a cell is a number that a spreadsheet keeps as it is written.
func isNumber(cell string) bool {
	x, err := strconv.ParseFloat(cell, 64)
	whole := !strings.Contains(cell, ".")
	return err == nil && strconv.FormatFloat(x, 'f', -1, 64) == cell && !(whole && len(strings.TrimPrefix(cell, "-")) > mostDigits)
}

// writeCell writes a number as one, so that a spreadsheet can count with it, and text as text.
func writeCell(b *bytes.Buffer, column, row int, cell string, head bool) {
	if cell == "" {
		return
	}
	name := ""
	for c := column + 1; c > 0; c = (c - 1) / 26 {
		name = string(rune('A'+(c-1)%26)) + name
	}
	if !head && isNumber(cell) {
		fmt.Fprintf(b, `<c r="%s%d"><v>%s</v></c>`, name, row, cell)
		return
	}
	style := ""
	if head {
		style = ` s="1"`
	}
	fmt.Fprintf(b, `<c r="%s%d"%s t="inlineStr"><is><t xml:space="preserve">%s</t></is></c>`, name, row, style, escaped(cell))
}

func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer takes everything
	return b.String()
}
