//! Numbers and tables as people read them.

/// `1234567` → `1,234,567`.
pub fn whole(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A key as a heading, broken after dots where it is long: `fleet.arrivals.` over `poisson.per_hour`.
pub(super) fn key_heading(key: &str) -> String {
    const WIDTH: usize = 24;
    let mut lines: Vec<String> = Vec::new();
    for part in key.split_inclusive('.') {
        match lines.last_mut() {
            Some(line) if key.len() <= WIDTH || line.len() + part.len() <= WIDTH => line.push_str(part),
            _ => lines.push(part.to_owned()),
        }
    }
    lines.join("\n")
}

fn grouped(x: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", x.abs());
    let (integer, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let grouped = integer.parse::<u64>().map_or_else(|_| integer.to_owned(), whole);
    let sign = if x < 0.0 && text.bytes().any(|b| (b'1'..=b'9').contains(&b)) { "-" } else { "" };
    if fraction.is_empty() { format!("{sign}{grouped}") } else { format!("{sign}{grouped}.{fraction}") }
}

/// Dollars with four decimals, two from a hundred on, more where the amount is small.
pub fn money(usd: f64) -> String {
    let size = usd.abs();
    let decimals = if size >= 100.0 {
        2
    } else if size >= 0.01 || size == 0.0 {
        4
    } else {
        // four digits that say something
        (3 - size.log10().floor() as i32).clamp(4, 12) as usize
    };
    let text = grouped(usd, decimals);
    text.strip_prefix('-').map_or_else(|| format!("${text}"), |rest| format!("-${rest}"))
}

/// Seconds with about four digits: `812 ms`, `13.81 s`, `1,046 s`.
pub fn seconds(s: f64) -> String {
    let size = s.abs();
    if size == 0.0 {
        "0 s".to_owned()
    } else if size < 0.000_999_5 {
        format!("{} µs", grouped(s * 1e6, significant(size * 1e6)))
    } else if size < 0.999_5 {
        format!("{} ms", grouped(s * 1e3, significant(size * 1e3)))
    } else {
        format!("{} s", grouped(s, significant(size)))
    }
}

/// Decimals for four significant digits, none from a thousand on.
fn significant(size: f64) -> usize {
    if size <= 0.0 { 0 } else { (3 - size.log10().floor() as i32).clamp(0, 3) as usize }
}

/// A count or a mean of counts.
pub fn count(x: f64) -> String {
    if x.fract() == 0.0 { grouped(x, 0) } else { grouped(x, significant(x.abs()).max(usize::from(x.abs() < 1e4))) }
}

/// A share: `2.02 %`, with at least three digits.
pub fn percent(share: f64) -> String {
    // shares that come about in different ways are written alike
    let x = (share * 1e12).round() / 1e10;
    if x == 0.0 || (100.0 - x).abs() < 1e-9 {
        return format!("{x:.0} %");
    }
    let near_end = x.abs().min((100.0 - x).abs());
    let decimals = (2 - near_end.log10().floor() as i32).clamp(1, 10) as usize;
    let mut text = format!("{x:.decimals$}");
    // of 99.9500 the last two say nothing
    if x > 99.0 {
        text.truncate(text.trim_end_matches('0').len().max("99.00".len()));
    }
    format!("{text} %")
}

/// A bare number with enough digits to compare two of them.
pub(super) fn number(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 || x.fract() == 0.0 && size < 1e15 {
        grouped(x, 0)
    } else if size >= 1e-3 {
        let decimals = (6 - size.log10().floor() as i32).clamp(2, 9) as usize;
        let text = grouped(x, decimals);
        let trimmed = text.trim_end_matches('0').trim_end_matches('.');
        trimmed.to_owned()
    } else {
        format!("{x:.6e}")
    }
}
