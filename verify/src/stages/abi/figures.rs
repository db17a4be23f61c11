//! What the programs measured: read from their tables, and put into one.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// One number.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Bytes of a message.
    pub bytes: u64,
    /// What was measured, with its unit, as the program has it.
    pub what: String,
    /// How much.
    pub value: f64,
}

/// What is read of the many numbers of a line: of programs that measure times, and of those that measure rates.
const TOLD: [&str; 2] = ["t_typical[", "BW average["];

/// What a program of perftest measured last, of each size in this order; that number must be one that work leaves. Those
/// of the sizes before it have two decimals: of a rate, who waited for a processor has 0.00 with the smallest ones.
pub fn measured(sizes: &[u64], output: &str) -> Result<Option<Figure>, String> {
    let mut lines = output.lines();
    let header = lines.find_map(header).ok_or("it has no table")?;
    let told = TOLD.iter().find_map(|told| header.iter().position(|name| name.starts_with(told)));
    let told = told.ok_or_else(|| format!("its table has {}", header.join(", ")))?;
    let figures = lines.filter_map(|line| {
        let numbers: Option<Vec<f64>> =
            line.split_whitespace().map(|word| word.parse().ok()).collect();
        let [bytes, _iterations, values @ ..] = &numbers?[..] else { return None };
        let value = *values.get(told)?;
        Some(Figure { bytes: *bytes as u64, what: header[told].clone(), value })
    });
    let mut figures: Vec<Figure> = figures.collect();
    let seen: Vec<u64> = figures.iter().map(|figure| figure.bytes).collect();
    if seen != sizes {
        return Err(format!("it measured messages of {seen:?} bytes, not of {sizes:?}"));
    }
    let last = figures.pop();
    let is_wrong = |figure: &&Figure| !figure.value.is_finite() || figure.value < 0.0;
    let wrong = figures.iter().find(is_wrong);
    match wrong.or(last.as_ref().filter(|last| is_wrong(last) || last.value == 0.0)) {
        Some(Figure { bytes, what, value }) => Err(format!("{what} of {bytes} bytes is {value}")),
        None => Ok(last),
    }
}

/// What the columns are called behind bytes and iterations, if this line heads a table.
fn header(line: &str) -> Option<Vec<String>> {
    let rest = line.trim().strip_prefix("#bytes")?.trim_start().strip_prefix("#iterations")?;
    Some(rest.split_inclusive(']').map(|name| name.trim().to_owned()).collect())
}

/// A program with its options, and the figure of each round.
pub type Line = (String, Vec<Option<Figure>>);

/// The table, for a terminal: a line for each program with its options that had a figure, with that of each round.
pub fn table(rounds: &[&str], lines: impl Iterator<Item = Line>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_BORDERS_ONLY);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["program", "bytes", "measure"].iter().chain(rounds));
    for (name, figures) in lines {
        let Some(first) = figures.iter().flatten().next() else { continue };
        let cells = [name, first.bytes.to_string(), first.what.clone()];
        let value = |figure: &Figure| format!("{:.2}", figure.value);
        let values = figures.iter().map(|figure| figure.as_ref().map_or_else(String::new, value));
        table.add_row(cells.into_iter().chain(values));
    }
    for (number, column) in table.column_iter_mut().enumerate() {
        if number != 0 && number != 2 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: &str = "\
---------------------------------------------------------------------------------------
                    Send Latency Test
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] 
 2       1000          0.87           3.52         0.91     	       0.92        	0.07   		1.11    		3.52   
 4       1000          0.88           3.50         0.93     	       0.94        	0.07   		1.11    		3.50   
---------------------------------------------------------------------------------------
";
    const RATE: &str = "\
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      1000             2912.79            2911.46		   0.046583
";

    #[test]
    fn a_latency_is_the_typical_one_and_a_rate_the_average() {
        for (sizes, output, what, value) in [
            (&[2, 4][..], LATENCY, "t_typical[usec]", 0.93),
            (&[65_536], RATE, "BW average[MB/sec]", 2911.46),
        ] {
            let (what, bytes) = (what.to_owned(), sizes[sizes.len() - 1]);
            assert_eq!(measured(sizes, output), Ok(Some(Figure { bytes, what, value })));
        }
    }

    #[test]
    fn what_was_not_measured_is_no_figure() {
        assert!(measured(&[2, 4], &LATENCY.replace("0.91", "nan")).is_err(), "no number");
        assert!(measured(&[2], LATENCY).is_err(), "one that was not asked for");
        assert!(measured(&[2, 4, 8], LATENCY).is_err(), "one is missing");
        assert!(measured(&[65_536], &RATE.replace("2911.46", "0.00")).is_err(), "nothing moved");
        assert!(measured(&[65_536], &RATE.replace("2911.46", "inf")).is_err(), "no number");
        assert!(measured(&[65_536], &RATE.replace("BW average", "BW")).is_err(), "another table");
        let header_alone: String = RATE.lines().take(1).collect();
        assert!(measured(&[65_536], &header_alone).is_err(), "no line");
        assert_eq!(measured(&[2], "Couldn't connect").unwrap_err(), "it has no table");
    }

    #[test]
    fn the_rate_of_the_smallest_may_be_below_what_is_printed() {
        let small = " 2          10              1.79               0.00		   0.000912\n 65536";
        assert!(measured(&[2, 65_536], &RATE.replace(" 65536", small)).is_ok());
    }

    #[test]
    fn the_table_has_a_line_for_what_has_figures_and_a_column_for_each_round() {
        let figure = |value| Some(Figure { bytes: 8, what: "t_typical[usec]".to_owned(), value });
        let lines = [("a -e", vec![figure(0.5), None]), ("b", vec![None, None])];
        let lines = lines.map(|(name, figures)| (name.to_owned(), figures));
        let text = table(&["as root", "as nobody"], lines.into_iter());
        assert!(text.contains("a -e") && text.contains("0.50") && text.contains("as nobody"));
        assert!(!text.contains(" b "), "{text}");
    }
}
