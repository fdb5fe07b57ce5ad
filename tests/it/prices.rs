//! The sheet and the tariff: worked bills, public bug reports, and rules that every row keeps.

use agent_sim::price::{PicoUsdPerToken, Sheet, Usage};
use jiff::civil::date;

use crate::support::{model, scenario, scenario_with};

fn usage(plain: u64, read: u64, written: u64, output: u64) -> Usage {
    Usage {
        plain_tokens: plain,
        read_tokens: read,
        written_messages_tokens: written,
        output_tokens: output,
        ..Usage::default()
    }
}

#[track_caller]
fn bill(model: &str, lifetime_s: Option<u64>, usage: Usage, want: f64) {
    let row = Sheet::embedded().find(model, None).unwrap();
    let got = row.tariff(lifetime_s).unwrap().cost(&usage).usd();
    assert!((got - want).abs() < 1e-12, "{model}: {got}, want {want}");
}

#[test]
fn worked_bills() {
    // provider fact sheet §7: (a) to (d)
    bill("gpt-6.1-sol", Some(1_800), usage(20_000, 280_000, 0, 1_000), 0.151);
    bill("gpt-6-astra", Some(1_800), usage(300_000, 0, 0, 1_000), 6.075);
    bill("gpt-6-astra", Some(1_800), usage(800, 200, 0, 100), 0.0132);
    bill("claude-haiku-5-5", Some(300), usage(0, 90_000, 20_000, 1_000), 0.0195);
    // group C of the bug reports: a tier is a cliff for the whole request, chosen by the prompt
    bill("claude-sonnet-4-5", None, usage(200_000, 0, 0, 0), 0.60);
    bill("claude-sonnet-4-5", None, usage(200_001, 0, 0, 0), 1.200006);
    bill("claude-sonnet-4-5", None, usage(300_000, 0, 0, 0), 1.80);
    bill("claude-sonnet-4-5", None, usage(1_000_000, 0, 0, 0), 6.00);
    bill("gpt-5.4", None, usage(300_000, 0, 0, 50_000), 2.625);
    bill("claude-sonnet-4-6", None, usage(300_000, 0, 0, 0), 0.90);
    // xAI's threshold is inclusive, others' exclusive
    bill("grok-4.7", None, usage(199_999, 0, 0, 0), 0.399_998);
    bill("grok-4.7", None, usage(200_000, 0, 0, 0), 0.80);
    bill("gpt-5.4", None, usage(272_000, 0, 0, 0), 0.68);
    // the output doesn't choose the tier
    bill("gemini-2.5-pro", None, usage(150_000, 0, 0, 60_000), 0.7875);
    // group B: an hour costs twice the input price
    bill("claude-sonnet-4-5", Some(3_600), usage(0, 0, 100_000, 0), 0.60);
    bill("claude-opus-4-8", Some(300), usage(0, 0, 600_000, 0), 3.75);
    bill("claude-opus-4-8", Some(3_600), usage(0, 0, 400_000, 0), 4.00);
    // A4: cached tokens once, at their own price
    bill("gpt-5", Some(600), usage(51_232, 1_188_096, 0, 12_909), 0.341642);
}

#[test]
fn written_tokens_count_towards_the_tier() {
    let tariff = Sheet::embedded().find("claude-haiku-5-5", None).unwrap().tariff(Some(300)).unwrap();
    assert_eq!(tariff.tier_of(usage(0, 60_000, 40_000, 0).prompt_tokens()), 0);
    assert_eq!(tariff.tier_of(usage(0, 60_000, 40_001, 0).prompt_tokens()), 1);
}

#[test]
fn every_row_is_consistent() {
    for row in Sheet::embedded().rows() {
        let name = format!("{} from {:?}", row.model, row.from);
        assert!(!row.source.is_empty() && !row.source_date.is_empty(), "{name} has no source");
        if let Some(read) = row.read {
            assert!(read <= row.input, "{name}: reading is dearer than input");
        }
        assert!(!row.writes.is_empty(), "{name} has no write price");
        for price in row.writes.by_seconds.values().chain(row.writes.any.iter()) {
            assert!(*price >= row.input, "{name}: writing is cheaper than input");
            assert!(price.0 <= 5 * row.input.0, "{name}: writing is dearer than five times input");
        }
        if let Some(tier) = &row.tier {
            assert!(tier.input >= row.input && tier.output >= row.output, "{name}: the long tier is cheaper");
            for seconds in row.writes.by_seconds.keys() {
                assert!(tier.writes.price(*seconds).is_some(), "{name}: no long-tier write price for {seconds} s");
            }
            assert_eq!(tier.read.is_some(), row.read.is_some(), "{name}");
        }
    }
    assert!(Sheet::embedded().rows().len() >= 66);
}

#[test]
fn a_column_that_nothing_reads_is_an_error() {
    let text = include_str!("../../src/price/sheet.tsv");
    let mut lines = text.lines();
    let header = format!("{}\tbatch_discount", lines.next().unwrap());
    let row = format!("{}\t0.5", lines.next().unwrap());
    let error = Sheet::parse(&format!("{header}\n{row}\n")).unwrap_err();
    assert!(error.to_string().contains("batch_discount"), "{error}");
}

#[test]
fn prices_have_dates() {
    let sheet = Sheet::embedded();
    let input = |name: &str, day| sheet.find(name, Some(day)).unwrap().input.usd_per_million();
    assert_eq!(input("gemini-4-argon", date(2026, 11, 30)), 2.0);
    assert_eq!(input("gemini-4-argon", date(2026, 12, 1)), 4.0);
    assert_eq!(input("gpt-5.6-sol", date(2026, 8, 20)), 5.0);
    let read = |day| sheet.find("claude-sonnet-5-5", Some(day)).unwrap().read.unwrap().usd_per_million();
    assert_eq!((read(date(2026, 10, 6)), read(date(2026, 10, 7))), (0.2, 0.1));
    let base = "[model]\nname = \"gemini-4-argon\"\nfirst_token = \"1s\"\n[session]\nturns = 2\noutput = 10\n";
    assert!(scenario(base).notes[0].contains("2026-12-01"), "{:?}", scenario(base).notes);
    let later = scenario_with(base, &["price.as_of=2026-12-01"]);
    assert_eq!(later.model.tariff.unwrap().base.input, PicoUsdPerToken(4_000_000));
    assert!(later.notes.is_empty());
}

#[test]
fn an_unknown_model_is_answered_with_the_nearest() {
    let error = Sheet::embedded().find("claude-sonnet-4.6", None).unwrap_err();
    assert_eq!(error.nearest[0], "claude-sonnet-4-6");
    assert!(Sheet::embedded().find("sonnet", None).unwrap_err().nearest.len() == 3);
    assert!(Sheet::embedded().find("zzz", None).unwrap_err().nearest.is_empty());
}

#[test]
fn own_prices_lie_over_the_sheet() {
    let base = "[model]\nname = \"claude-haiku-5-5\"\n[session]\nturns = 2\n[cache]\nlifetime = \"5m\"\n";
    let own = scenario_with(base, &["price.input=0.08", "price.write_multiplier_5m=1.25"]).model.tariff.unwrap();
    assert_eq!(own.base.input.usd_per_million(), 0.08);
    assert_eq!(own.base.write_messages.usd_per_million(), 0.1);
    assert_eq!(own.base.read.usd_per_million(), 0.01);
    // the long-context tier keeps its ratio of five
    let (from, tier) = own.tier.unwrap();
    assert_eq!((from, tier.input.usd_per_million()), (100_001, 0.4));
    assert_eq!(tier.write_messages.usd_per_million(), 0.5);
    assert_eq!(tier.read.usd_per_million(), 0.05);
}

#[test]
fn a_provider_that_does_not_charge_for_writing_bills_it_as_input() {
    let tariff =
        model("[model]\nname = \"gpt-4o\"\n[session]\nturns = 2\n[cache]\nlifetime = \"10m\"\n").tariff.unwrap();
    assert_eq!(tariff.base.write_messages, tariff.base.input);
    assert_eq!(tariff.base.read.usd_per_million(), 1.25);
}

#[test]
fn prices_are_whole_pico_dollars() {
    assert_eq!(PicoUsdPerToken::from_usd_per_million(0.003).unwrap().0, 3_000);
    assert!(PicoUsdPerToken::from_usd_per_million(-1.0).is_err());
    assert!(PicoUsdPerToken::from_usd_per_million(f64::NAN).is_err());
    assert!(PicoUsdPerToken::from_usd_per_million(1e7).is_err());
    assert!(PicoUsdPerToken::from_usd_per_million(0.000_000_5).is_err());
}
