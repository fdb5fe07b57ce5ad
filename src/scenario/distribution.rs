//! Reading a number or the law it is drawn from.

use std::path::Path;

use super::mistake::Mistake;
use super::reader::{Reader, Sink, as_table, complain, duration, nearest, number, text};
use super::tree::{Data, Node, Span, Table};
use crate::dist::{
    Choices, Dist, DistError, Empirical, Exponential, FoldedNormal, Gamma, Geometric, LogNormal, Mixture, Pareto,
    Poisson, Quantiles, Scaled, Uniform, Weibull,
};

/// Every family's name.
pub(super) const FAMILIES: [&str; 14] = [
    "exponential",
    "lognormal",
    "gamma",
    "weibull",
    "pareto",
    "uniform",
    "normal",
    "quantiles",
    "empirical",
    "mixture",
    "scaled",
    "geometric",
    "poisson",
    "choices",
];

/// What the law is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// Seconds, written as `"2s"`.
    Duration,
    /// Whole tokens.
    Tokens,
    /// Calls, turns.
    Count,
    /// Tokens per second.
    Rate,
}

impl Measure {
    fn counts(self) -> bool {
        matches!(self, Measure::Tokens | Measure::Count)
    }

    /// One value in this measure.
    fn value(self, node: &Node, key: &str, sink: &Sink) -> Option<f64> {
        if self == Measure::Duration {
            return duration(node, key, sink);
        }
        let value = number(node, key, sink)?;
        if value < 0.0 {
            complain(sink, Mistake::at(node.span, format!("`{key}` can't be negative")).label("below zero"));
            return None;
        }
        Some(value)
    }

    /// A constant in this measure: tokens and counts must be whole.
    fn constant(self, node: &Node, key: &str, sink: &Sink) -> Option<f64> {
        if self != Measure::Duration && !matches!(node.data, Data::Integer(_) | Data::Float(_)) {
            complain(
                sink,
                Mistake::at(node.span, format!("`{key}` must be a number or a distribution"))
                    .label(format!("this is {}", node.kind()))
                    .help(format!("for example {key} = {}", self.example())),
            );
            return None;
        }
        let value = self.value(node, key, sink)?;
        if self.counts() && value.fract() != 0.0 {
            let (low, high) = (value.floor(), value.ceil());
            complain(
                sink,
                Mistake::at(node.span, format!("`{key}` must be a whole number")).label("not a whole number").help(
                    format!(
                        "for an average of {value} write {{ choices = {{ \"{low}\" = {:.3}, \"{high}\" = {:.3} }} }}",
                        high - value,
                        value - low
                    ),
                ),
            );
            return None;
        }
        Some(value)
    }

    fn example(self) -> &'static str {
        match self {
            Measure::Duration => "\"2s\" or { lognormal = { p50 = \"800ms\", p99 = \"12s\" } }",
            Measure::Tokens => "700 or { lognormal = { p50 = 400, p99 = 9_000 } }",
            Measure::Count => "3 or { geometric = { mean = 12 } }",
            Measure::Rate => "70 or { lognormal = { p50 = 60, cv = 0.3 } }",
        }
    }
}

/// Reads a scalar or `{ family = { … } }`. `folder` is where files are looked for.
pub(super) fn distribution(node: &Node, key: &str, measure: Measure, folder: &Path, sink: &Sink) -> Option<Dist> {
    let table = match &node.data {
        Data::Table(table) => table,
        Data::Array(_) | Data::Boolean(_) | Data::Date(_) => {
            complain(
                sink,
                Mistake::at(node.span, format!("`{key}` must be a value or a distribution"))
                    .label(format!("this is {}", node.kind()))
                    .help(format!("for example {key} = {}", measure.example())),
            );
            return None;
        }
        Data::String(word) if measure != Measure::Duration && FAMILIES.contains(&word.as_str()) => {
            complain(
                sink,
                Mistake::at(node.span, format!("`{key}` names a family without its parameters"))
                    .label("which mean, which spread?")
                    .help(format!("for example {key} = {}", measure.example())),
            );
            return None;
        }
        _ => return measure.constant(node, key, sink).map(Dist::constant),
    };
    let [(family, parameters)] = table.entries.as_slice() else {
        complain(
            sink,
            Mistake::at(node.span, format!("`{key}` must name exactly one family"))
                .label(format!("{} keys", table.entries.len()))
                .help(format!("for example {key} = {}", measure.example())),
        );
        return None;
    };
    let name = family.name.as_str();
    if !FAMILIES.contains(&name) {
        let label =
            nearest(name, &FAMILIES).map_or_else(|| "unknown family".to_owned(), |n| format!("did you mean `{n}`?"));
        let help = format!("the families are {}", FAMILIES.join(", "));
        let mistake = Mistake::at(family.span, format!("there is no distribution `{name}`")).label(label).help(help);
        complain(sink, mistake);
        return None;
    }
    if !measure.counts() && matches!(name, "geometric" | "poisson" | "choices") {
        complain(
            sink,
            Mistake::at(family.span, format!("`{name}` is for counts and tokens, not for `{key}`"))
                .label("a law on whole numbers")
                .help(format!("for example {key} = {}", measure.example())),
        );
        return None;
    }
    if name == "mixture" {
        return mixture(parameters, key, measure, folder, sink);
    }
    if name == "scaled" {
        return scaled(parameters, key, measure, folder, sink);
    }
    let inner = as_table(parameters, name, sink)?;
    let context = Context { name, span: parameters.span, measure, folder, sink };
    let before = sink.borrow().len();
    let law = context.family(inner);
    let clean = sink.borrow().len() == before;
    match law {
        Some(Ok(law)) if clean => Some(law),
        Some(Err(error)) if clean => {
            complain(
                sink,
                Mistake::at(parameters.span, format!("this `{name}` can't exist: {error}")).label("impossible"),
            );
            None
        }
        _ => None,
    }
}

struct Context<'a> {
    name: &'a str,
    span: Span,
    measure: Measure,
    folder: &'a Path,
    sink: &'a Sink,
}

impl Context<'_> {
    #[allow(clippy::unnecessary_wraps)] // one shape for every family
    fn family(&self, table: &Table) -> Option<Result<Dist, DistError>> {
        #[allow(clippy::unnecessary_wraps)]
        fn made<L: Into<Dist>>(law: Result<L, DistError>) -> Option<Result<Dist, DistError>> {
            Some(law.map(Into::into))
        }
        let mut reader = Reader::new(table, format!("`{}`", self.name), self.sink);
        let scale = |node: &Node, key: &str, sink: &Sink| self.measure.value(node, key, sink);
        let plain = |node: &Node, key: &str, sink: &Sink| number(node, key, sink);
        let law = match self.name {
            "exponential" => {
                let mean = reader.get("mean", scale);
                self.needs(&[("mean", mean.is_some())], table)?;
                made(Exponential::new(mean?.value))
            }
            "gamma" => {
                let (mean, cv) = (reader.get("mean", scale), reader.get("cv", plain));
                self.needs(&[("mean", mean.is_some()), ("cv", cv.is_some())], table)?;
                made(Gamma::new(mean?.value, cv?.value))
            }
            "weibull" => {
                let (scale, shape) = (reader.get("scale", scale), reader.get("shape", plain));
                self.needs(&[("scale", scale.is_some()), ("shape", shape.is_some())], table)?;
                made(Weibull::new(scale?.value, shape?.value))
            }
            "pareto" => {
                let (min, alpha) = (reader.get("min", scale), reader.get("alpha", plain));
                self.needs(&[("min", min.is_some()), ("alpha", alpha.is_some())], table)?;
                made(Pareto::new(min?.value, alpha?.value))
            }
            "uniform" => {
                let (min, max) = (reader.get("min", scale), reader.get("max", scale));
                self.needs(&[("min", min.is_some()), ("max", max.is_some())], table)?;
                made(Uniform::new(min?.value, max?.value))
            }
            "normal" => {
                let (mean, sd) = (reader.get("mean", scale), reader.get("sd", scale));
                self.needs(&[("mean", mean.is_some()), ("sd", sd.is_some())], table)?;
                made(FoldedNormal::new(mean?.value, sd?.value))
            }
            "geometric" => {
                let mean = reader.get("mean", scale);
                self.needs(&[("mean", mean.is_some())], table)?;
                made(Geometric::new(mean?.value))
            }
            "poisson" => {
                let mean = reader.get("mean", scale);
                self.needs(&[("mean", mean.is_some())], table)?;
                made(Poisson::new(mean?.value))
            }
            "lognormal" => self.lognormal(&mut reader),
            "quantiles" => self.quantiles(&mut reader),
            "choices" => self.choices(&mut reader),
            _ => self.empirical(&mut reader),
        };
        reader.finish();
        law
    }

    /// Says which needed keys are missing; a key that is there and wrong has had its message.
    fn needs(&self, keys: &[(&str, bool)], table: &Table) -> Option<()> {
        let missing: Vec<&str> =
            keys.iter().filter(|(key, read)| !read && table.get(key).is_none()).map(|(key, _)| *key).collect();
        if !missing.is_empty() {
            let all: Vec<&str> = keys.iter().map(|(key, _)| *key).collect();
            complain(
                self.sink,
                Mistake::at(self.span, format!("`{}` needs `{}`", self.name, missing.join("` and `")))
                    .label("incomplete")
                    .help(format!("its parameters are {}", all.join(" and "))),
            );
            return None;
        }
        keys.iter().all(|(_, read)| *read).then_some(())
    }

    fn lognormal(&self, reader: &mut Reader<'_>) -> Option<Result<Dist, DistError>> {
        const POINTS: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)];
        let scale = |node: &Node, key: &str, sink: &Sink| self.measure.value(node, key, sink);
        let before = self.sink.borrow().len();
        let mean = reader.get("mean", scale);
        let points: Vec<(f64, f64)> =
            POINTS.iter().filter_map(|(key, p)| Some((*p, reader.get(key, scale)?.value))).collect();
        let cv = reader.get("cv", number);
        if self.sink.borrow().len() > before {
            return None;
        }
        let law = match (mean, points.as_slice(), cv) {
            (Some(mean), [], Some(cv)) => LogNormal::from_mean_cv(mean.value, cv.value),
            (Some(mean), [(p, value)], None) => LogNormal::from_mean_quantile(mean.value, *p, *value),
            (None, [(p, value)], Some(cv)) => LogNormal::from_quantile_cv(*p, *value, cv.value),
            (None, [(p, low), (q, high)], None) => LogNormal::from_quantiles(*p, *low, *q, *high),
            _ => {
                let given = usize::from(mean.is_some()) + points.len() + usize::from(cv.is_some());
                complain(
                    self.sink,
                    Mistake::at(self.span, "`lognormal` needs exactly two of mean, p50, p90, p95, p99 and cv")
                        .label(format!("{given} given"))
                        .help("for example { p50 = …, p99 = … } or { mean = …, cv = 1.5 }"),
                );
                return None;
            }
        };
        Some(law.map(Into::into))
    }

    #[allow(clippy::unnecessary_wraps)]
    fn quantiles(&self, reader: &mut Reader<'_>) -> Option<Result<Dist, DistError>> {
        const POINTS: [(&str, f64); 12] = [
            ("p0", 0.0),
            ("p1", 0.01),
            ("p5", 0.05),
            ("p10", 0.1),
            ("p25", 0.25),
            ("p50", 0.5),
            ("p75", 0.75),
            ("p90", 0.9),
            ("p95", 0.95),
            ("p99", 0.99),
            ("p999", 0.999),
            ("p100", 1.0),
        ];
        let scale = |node: &Node, key: &str, sink: &Sink| self.measure.value(node, key, sink);
        let points = POINTS.iter().filter_map(|(key, p)| Some((*p, reader.get(key, scale)?.value))).collect::<Vec<_>>();
        Some(Quantiles::new(points).map(Into::into))
    }

    #[allow(clippy::unnecessary_wraps)]
    fn choices(&self, reader: &mut Reader<'_>) -> Option<Result<Dist, DistError>> {
        let mut values = Vec::new();
        reader.matching(|key, span, node| {
            match key.parse::<u64>() {
                Ok(value) => {
                    if let Some(weight) = super::reader::chance(node, key, self.sink) {
                        values.push((value as f64, weight));
                    }
                }
                Err(_) => complain(
                    self.sink,
                    Mistake::at(span, format!("`{key}` isn't a whole number"))
                        .label("not a value")
                        .help("choices map values to chances: { \"0\" = 0.7, \"2\" = 0.3 }"),
                ),
            }
            Some(())
        });
        Some(Choices::new(values).map(Into::into))
    }

    fn empirical(&self, reader: &mut Reader<'_>) -> Option<Result<Dist, DistError>> {
        let values = reader.node("values");
        let (file, column) = (reader.get("file", text), reader.get("column", text));
        let values = match (values, file, column) {
            (Some(values), None, None) => {
                let Data::Array(items) = &values.data else {
                    let mistake = Mistake::at(values.span, "`values` must be a list");
                    complain(self.sink, mistake.label(format!("this is {}", values.kind())));
                    return None;
                };
                items.iter().map(|item| self.measure.value(item, "values", self.sink)).collect::<Option<Vec<f64>>>()?
            }
            (None, Some(file), Some(column)) => match read_column(&self.folder.join(&file.value), &column.value) {
                Ok(values) => values,
                Err(message) => {
                    complain(self.sink, Mistake::at(file.span, message).label("measured values can't be read"));
                    return None;
                }
            },
            _ => {
                complain(
                    self.sink,
                    Mistake::at(self.span, "`empirical` needs `values`, or `file` and `column`")
                        .help("for example { file = \"latency.csv\", column = \"seconds\" }"),
                );
                return None;
            }
        };
        Some(Empirical::new(values).map(Into::into))
    }
}

fn mixture(node: &Node, key: &str, measure: Measure, folder: &Path, sink: &Sink) -> Option<Dist> {
    let Data::Array(items) = &node.data else {
        complain(
            sink,
            Mistake::at(node.span, "`mixture` must be a list")
                .label(format!("this is {}", node.kind()))
                .help("for example [{ weight = 0.95, of = … }, { weight = 0.05, of = … }]"),
        );
        return None;
    };
    let before = sink.borrow().len();
    let mut parts = Vec::new();
    for item in items {
        let Some(table) = as_table(item, "mixture", sink) else { continue };
        let mut reader = Reader::new(table, "a part of `mixture`", sink);
        let weight = reader.get("weight", super::reader::chance);
        let of = reader.get("of", |node, _, sink| distribution(node, key, measure, folder, sink));
        reader.finish();
        match (weight, of) {
            (Some(weight), Some(of)) => parts.push((weight.value, of.value)),
            _ if sink.borrow().len() == before => {
                let mistake = Mistake::at(item.span, "a part of `mixture` needs `weight` and `of`").label("incomplete");
                complain(sink, mistake);
            }
            _ => {}
        }
    }
    if sink.borrow().len() > before {
        return None;
    }
    match Mixture::new(parts) {
        Ok(law) => Some(law.into()),
        Err(error) => {
            complain(sink, Mistake::at(node.span, format!("this `mixture` can't exist: {error}")).label("impossible"));
            None
        }
    }
}

/// `{ scaled = { by = 0.5, of = … } }`: half of another law. A constant stays one.
fn scaled(node: &Node, key: &str, measure: Measure, folder: &Path, sink: &Sink) -> Option<Dist> {
    let before = sink.borrow().len();
    let table = as_table(node, "scaled", sink)?;
    let mut reader = Reader::new(table, "`scaled`", sink);
    let by = reader.get("by", super::reader::positive);
    let of = reader.get("of", |node, _, sink| distribution(node, key, measure, folder, sink));
    reader.finish();
    match (by, of) {
        (Some(by), Some(of)) => match of.value.as_constant() {
            Some(value) => Some(Dist::constant(by.value * value)),
            None => Scaled::new(by.value, of.value).ok().map(Dist::from),
        },
        _ => {
            if sink.borrow().len() == before {
                let mistake = Mistake::at(node.span, "`scaled` needs `by` and `of`").label("incomplete");
                complain(
                    sink,
                    mistake.help("for example { scaled = { by = 0.5, of = { exponential = { mean = 700 } } } }"),
                );
            }
            None
        }
    }
}

/// The numbers of the first column of a CSV file with a header.
pub(super) fn read_first_column(path: &Path) -> Result<Vec<f64>, String> {
    let shown = path.display();
    let mut reader = csv::Reader::from_path(path).map_err(|e| format!("{shown}: {e}"))?;
    let first = reader.headers().map_err(|e| format!("{shown}: {e}"))?.get(0).unwrap_or_default().to_owned();
    if first.trim().parse::<f64>().is_ok() {
        return Err(format!("{shown} has no header: its first line should name its columns"));
    }
    read_column(path, &first)
}

/// The numbers of one column of a CSV file with a header.
pub(super) fn read_column(path: &Path, column: &str) -> Result<Vec<f64>, String> {
    let shown = path.display();
    let mut reader = csv::Reader::from_path(path).map_err(|e| format!("{shown}: {e}"))?;
    let header = reader.headers().map_err(|e| format!("{shown}: {e}"))?;
    let names: Vec<&str> = header.iter().collect();
    let index = names
        .iter()
        .position(|name| *name == column)
        .ok_or_else(|| format!("{shown} has no column `{column}`; its columns are {}", names.join(", ")))?;
    let mut values = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| format!("{shown}: {e}"))?;
        let cell = record.get(index).unwrap_or_default();
        let line = record.position().map_or(0, csv::Position::line);
        let value = cell.trim().parse::<f64>().ok().filter(|x| x.is_finite() && *x >= 0.0);
        values.push(value.ok_or_else(|| format!("{shown}, line {line}: `{cell}` isn't a number from 0 on"))?);
    }
    Ok(values)
}
