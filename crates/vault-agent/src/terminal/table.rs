//! Renders tables: in columns if they fit, otherwise row by row.

use vault_search::Paint;

use super::wrap::{Span, Style, columns_of, painted, wrapped};

/// A parsed table: the cells row by row. The first row is the header.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub rows: Vec<Vec<Vec<Span>>>,
}

impl Table {
    /// Renders the table in lines of at most `width` columns if possible.
    pub fn lines(&self, width: usize, paint: &Paint) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| columns_of(cell)).max().unwrap_or(0)
            })
            .collect();
        let whole = widths.iter().sum::<usize>() + 3 * columns.saturating_sub(1);
        if whole > width {
            return self.row_by_row(width, paint);
        }
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cell = |(column, width): (usize, &usize)| {
                let spans = row.get(column).map_or(&[][..], Vec::as_slice);
                let gap = " ".repeat(width.saturating_sub(columns_of(spans)));
                format!("{}{gap}", painted(&of_row(spans, number), paint))
            };
            let cells: Vec<String> = widths.iter().enumerate().map(cell).collect();
            lines.push(cells.join(&paint.dim(" │ ")).trim_end().to_owned());
            if number == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(paint.dim(&rules.join("─┼─")));
            }
        }
        lines
    }

    /// Renders each row as lines `header: cell`.
    fn row_by_row(&self, width: usize, paint: &Paint) -> Vec<String> {
        let Some((header, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                lines.push(String::new());
            }
            for (name, cell) in header.iter().zip(row) {
                let mut spans = of_row(name, 0);
                spans.push(Span::new(Style::default(), ": "));
                spans.extend(cell.iter().cloned());
                lines.extend(wrapped(&spans, width, paint));
            }
        }
        lines
    }
}

/// Makes the cells of the header bold.
fn of_row(spans: &[Span], row: usize) -> Vec<Span> {
    let mut spans = spans.to_vec();
    spans.iter_mut().for_each(|span| span.style.bold |= row == 0);
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_too_wide_is_shown_row_by_row() {
        let cell = |text: &str| vec![Span::new(Style::default(), text)];
        let row = |one: &str, two: &str| vec![cell(one), cell(two)];
        let table = Table { rows: vec![row("Bed", "Crop"), row("1", "beans"), row("2", "early peas")] };
        let lines = table.lines(16, &Paint::default());
        assert_eq!(lines, ["Bed │ Crop", "────┼───────────", "1   │ beans", "2   │ early peas"]);
        let lines = table.lines(12, &Paint::default());
        assert_eq!(lines, ["Bed: 1", "Crop: beans", "", "Bed: 2", "Crop: early", "peas"]);
    }
}
