//! The sheet and the tariff: worked bills, public bug reports, and rules that every row keeps.

use agent_sim::price::{PicoUsdPerToken, Sheet, Split};
use jiff::civil::date;

use crate::support::{model, scenario, scenario_with};

fn usage(plain: u64, read: u64, written: u64, output: u64) -> Split {
    Split {
        plain_tokens: plain,
        read_tokens: read,
        written_messages_tokens: written,
        output_tokens: output,
        ..Split::default()
    }
}

#[track_caller]
fn bill(model: &str, lifetime_s: Option<u64>, usage: Split, want: f64) {
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
        assert_eq!(row.oddities(), Vec::<String>::new(), "{name}");
        assert!(!row.writes.is_empty(), "{name} has no write price");
        for tier in &row.tiers {
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

const LITELLM: &str = r#"{
    "sample_spec": {"input_cost_per_token": 0.0, "litellm_provider": "one of the providers"},
    "dall-e-2": {"litellm_provider": "openai", "input_cost_per_pixel": 1.9e-08, "output_cost_per_pixel": 0.0},
    "claude-sonnet-4-5": {
        "litellm_provider": "anthropic", "input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05,
        "cache_read_input_token_cost": 3e-07, "cache_creation_input_token_cost": 3.75e-06,
        "cache_creation_input_token_cost_above_1hr": 6e-06, "input_cost_per_token_above_200k_tokens": 6e-06,
        "output_cost_per_token_above_200k_tokens": 2.25e-05, "deprecation_date": "2026-11-30", "max_input_tokens": 200000
    },
    "xai/grok-4.7": {
        "litellm_provider": "xai", "input_cost_per_token": 2e-06, "output_cost_per_token": 7e-06,
        "cache_read_input_token_cost": 5e-07, "input_cost_per_token_above_200k_tokens": 4e-06,
        "output_cost_per_token_above_200k_tokens": 1.2e-05, "cache_read_input_token_cost_above_200k_tokens": 1e-06
    },
    "gpt-6.1-sol": {
        "litellm_provider": "openai", "input_cost_per_token": 2e-06, "output_cost_per_token": 1e-05,
        "cache_read_input_token_cost": 1e-07, "cache_creation_input_token_cost": 2.5e-06,
        "cache_creation_input_token_cost_above_12hr": 5e-06
    },
    "azure/gpt-6.1-sol": {"litellm_provider": "azure", "input_cost_per_token": 2.2e-06, "output_cost_per_token": 1.1e-05},
    "perplexity/anthropic/claude-sonnet-4-5": {
        "litellm_provider": "perplexity", "input_cost_per_token": 4e-06, "output_cost_per_token": 2e-05
    },
    "zai/glm-5.3": {
        "litellm_provider": "zai", "input_cost_per_token": 1.4e-06, "output_cost_per_token": 4.4e-06,
        "cache_read_input_token_cost": 2.6e-07, "cache_creation_input_token_cost": 0
    },
    "snowflake/claude-x": {
        "litellm_provider": "snowflake", "input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05,
        "cache_read_input_token_cost": 3e-07
    },
    "thinker": {
        "litellm_provider": "y", "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06,
        "output_cost_per_reasoning_token": 8e-06
    },
    "half-a-tier": {
        "litellm_provider": "y", "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06,
        "input_cost_per_token_above_200k_tokens": 2e-06
    },
    "gemini/wrong": {"litellm_provider": "gemini", "input_cost_per_token": "a lot", "output_cost_per_token": 1e-05},
    "deepseek/flash": {
        "litellm_provider": "deepseek", "input_cost_per_token": 3e-07, "output_cost_per_token": 1.2e-06,
        "off_peak_pricing": {"input_cost_per_token": 1.5e-07}
    }
}"#;

const GENAI: &str = r#"[{
    "id": "anthropic", "name": "Anthropic", "pricing_urls": ["https://example.org/pricing"], "models": [
        {"id": "claude-sonnet-4-6", "match": {"starts_with": "claude-sonnet-4-6"}, "context_window": 1000000, "prices": [
            {"prices": {
                "input_mtok": {"base": 3, "tiers": [{"start": 200000, "price": 6}]},
                "cache_write_mtok": {"base": 3.75, "tiers": [{"start": 200000, "price": 7.5}]},
                "cache_write_1h_mtok": 6, "cache_read_mtok": "0.3",
                "output_mtok": {"base": 15, "tiers": [{"start": 200000, "price": 22.5}]}}},
            {"constraint": {"start_date": "2026-03-13"},
             "prices": {"input_mtok": 3, "cache_write_mtok": 3.75, "cache_read_mtok": 0.3, "output_mtok": 15}}
        ]},
        {"id": "claude-old", "match": {"equals": "claude-old"}, "prices": {"input_mtok": 8}}
    ]}, {
    "id": "deepseek", "models": [{"id": "flash", "prices": [
        {"prices": {"input_mtok": 0.3, "output_mtok": 1.2}},
        {"constraint": {"start_time": "16:30:00Z", "end_time": "00:30:00Z"}, "prices": {"input_mtok": 0.15, "output_mtok": 0.6}}
    ]}]
}]"#;

fn imported(text: &str) -> agent_sim::price::Imported {
    Sheet::import(text, "table.json", date(2026, 11, 30)).unwrap()
}

#[test]
fn litellms_table_is_read() {
    let read = imported(LITELLM);
    assert_eq!((read.format, read.sheet.rows().len()), ("LiteLLM", 8));
    let sonnet = read.sheet.find("anthropic/claude-sonnet-4-5", None).unwrap();
    assert_eq!(sonnet.writes.offered(), "5m, 1h");
    assert_eq!((sonnet.min_cacheable_tokens, sonnet.retires), (1_024, Some(date(2026, 11, 30))));
    // the file says nothing of cached tokens in long prompts, so they have no price there
    assert_eq!((sonnet.tiers[0].from_tokens, sonnet.tiers[0].read), (200_001, None));
    assert!(sonnet.tariff(Some(300)).unwrap_err().to_string().contains("no price for a cache read"));
    assert!(sonnet.tariff(None).is_ok());
    // a reseller's name may be a provider's and a model's; the provider's own row is meant
    assert_eq!(sonnet.provider, "anthropic");
    let resold = read.sheet.find("perplexity/anthropic/claude-sonnet-4-5", None).unwrap();
    assert_eq!(resold.input.usd_per_million(), 4.0);
    // no charge for writing is no free prompt
    let glm = read.sheet.find("zai/glm-5.3", None).unwrap();
    assert_eq!((glm.writes.price(300), glm.writes.price(300)), (Some(glm.input), Some(glm.input)));
    // what a write costs where it isn't told and isn't input's price isn't known
    assert!(read.sheet.find("claude-x", None).unwrap().writes.is_empty());
    let grok = read.sheet.find("grok-4.7", None).unwrap();
    assert_eq!((grok.tiers[0].from_tokens, grok.writes.offered()), (200_000, "any duration".to_owned()));
    assert_eq!(grok.tiers[0].writes.price(60).unwrap().usd_per_million(), 4.0);
    let several = read.sheet.find("gpt-6.1-sol", None).unwrap_err();
    assert_eq!(
        several.to_string(),
        "several providers sell `gpt-6.1-sol`: say azure/gpt-6.1-sol or openai/gpt-6.1-sol"
    );
    assert_eq!(read.sheet.find("openai/gpt-6.1-sol", None).unwrap().writes.offered(), "30m, 12h");
    let remarks = read.remarks.join("\n");
    for says in [
        "gemini/wrong is left out: `input_cost_per_token` isn't a number",
        "dall-e-2: no price for both input and output tokens",
        "deepseek/flash: cheaper at some hours",
        "zai/glm-5.3: no charge for writing to the cache",
        "thinker is left out: thinking has a price of its own",
        "half-a-tier is left out: `output_cost_per_token_above_200k_tokens` is missing",
    ] {
        assert!(remarks.contains(says), "{remarks}");
    }
}

#[test]
fn genai_prices_are_read_with_their_days() {
    let read = imported(GENAI);
    assert_eq!((read.format, read.sheet.rows().len()), ("genai-prices", 3));
    let on = |day| read.sheet.find("claude-sonnet-4-6", Some(day)).unwrap();
    let before = on(date(2026, 3, 12));
    let tier = &before.tiers[0];
    assert_eq!((tier.from_tokens, tier.input.usd_per_million(), tier.output.usd_per_million()), (200_001, 6.0, 22.5));
    // a price without tiers holds in all of them
    assert_eq!((tier.read, tier.writes.price(3_600)), (before.read, before.writes.price(3_600)));
    assert_eq!(before.writes.price(300).unwrap().usd_per_million(), 3.75);
    let after = on(date(2026, 3, 13));
    assert_eq!((after.tiers.len(), after.writes.offered(), after.min_cacheable_tokens), (0, "5m".to_owned(), 1_024));
    let remarks = read.remarks.join("\n");
    assert!(remarks.contains("deepseek/flash: other prices at some hours"), "{remarks}");
    assert!(remarks.contains("anthropic/claude-old: no price for both"), "{remarks}");
}

#[test]
fn a_dated_price_that_cant_be_read_takes_the_older_one_with_it() {
    let table = |newer: &str| {
        let text = format!(
            r#"[{{"id": "x", "models": [{{"id": "a", "prices": [
                {{"prices": {{"input_mtok": 1, "output_mtok": 2}}}},
                {{"constraint": {{"start_date": "2026-03-01"}}, "prices": {newer}}}]}},
                {{"id": "b", "prices": {{"input_mtok": 1, "output_mtok": 2}}}}]}}]"#
        );
        imported(&text)
    };
    assert_eq!(
        table(r#"{"input_mtok": 5, "output_mtok": 9}"#).sheet.find("a", None).unwrap().input.usd_per_million(),
        5.0
    );
    for newer in [
        r#"{"input_mtok": 5, "output_mtok": 9, "output_reasoning_mtok": 20}"#,
        r#"{"input_mtok": 0.1234567891, "output_mtok": 9}"#,
    ] {
        let read = table(newer);
        assert!(read.sheet.find("a", None).is_err() && read.sheet.find("b", None).is_ok(), "{:?}", read.sheet);
        assert!(read.remarks.join("\n").contains("x/a is left out"), "{:?}", read.remarks);
    }
}

#[test]
fn the_row_in_force_doesnt_depend_on_the_order_of_rows() {
    let rows = ["x\ty\t\t3\t4", "x\ty\t2026-05-01\t7\t8", "x\ty\t2027-06-01\t9\t9", "x\tlate\t2027-06-01\t1\t1"];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
        let text: Vec<&str> = order.iter().map(|i| rows[*i]).collect();
        let sheet = Sheet::parse(&format!("provider\tmodel\tfrom\tinput\toutput\n{}\n", text.join("\n"))).unwrap();
        let input = |day| sheet.find("y", Some(day)).unwrap().input.usd_per_million();
        assert_eq!((input(date(2026, 4, 30)), input(date(2026, 5, 1)), input(date(2027, 6, 1))), (3.0, 7.0, 9.0));
        let row = sheet.find("y", Some(date(2026, 4, 30))).unwrap();
        assert_eq!(sheet.next_change(row, Some(date(2026, 4, 30))).unwrap().from, Some(date(2026, 5, 1)));
        let early = sheet.find("late", Some(date(2026, 1, 1))).unwrap_err();
        assert_eq!(early.to_string(), "`late` has no price on 2026-01-01: its first is of 2027-06-01");
        assert_eq!(sheet.in_force(Some(date(2026, 5, 1))).len(), 1);
    }
    let twice = "provider\tmodel\tinput\toutput\nx\ty\t1\t2\nx\ty\t3\t4\n";
    assert!(Sheet::parse(twice).unwrap_err().to_string().contains("line 3, y: it is there twice"));
}

#[test]
fn what_is_no_table_is_an_error() {
    for (text, says) in [
        ("", "it must be LiteLLM's"),
        ("provider,model,input,output\n", "it must be LiteLLM's"),
        ("{", "isn't valid JSON: EOF while parsing an object at line 1 column 1"),
        ("[1, 2]", "none of its entries has `models`"),
        ("{\"a\": {\"b\": 1}}", "none of its entries has `input_cost_per_token`"),
        ("{\"a\": {\"litellm_provider\": \"x\"}}", "no row of it has a price"),
        ("provider\tmodel\tinput\toutput\nx\ty\t1\t-2\n", "line 2, y: a price must be 0 or more"),
        ("provider\tmodel\tinput\toutput\nx\ty\t1\t\n", "line 2, y: `output` is missing"),
    ] {
        let error = Sheet::import(text, "table", date(2026, 11, 30)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_scenario_takes_the_prices_it_is_given() {
    use agent_sim::scenario::{Request, Scenario};
    let sheet = imported(GENAI).sheet;
    let text = "[model]\nname = \"claude-sonnet-4-6\"\n[session]\nturns = 2\noutput = 10\n[cache]\nlifetime = \"5m\"\n";
    let parse = |text: &str, as_of| {
        let request = Request { sheet: Some(sheet.clone()), as_of, ..Request::default() };
        Scenario::parse(text, "a.toml", "".as_ref(), &request)
    };
    let old = parse(text, Some(date(2026, 1, 1))).unwrap();
    assert_eq!(old.model.tariff.as_ref().unwrap().tier.unwrap().0, 200_001);
    assert_eq!(
        (old.price.unwrap().as_of, parse(text, None).unwrap().price.unwrap().as_of),
        ("2026-01-01".to_owned(), "2026-11-30".to_owned())
    );
    // the day that is asked for wins over the file's
    let dated = format!("{text}[price]\nas_of = 2026-11-01\n");
    assert!(parse(&dated, Some(date(2026, 1, 1))).unwrap().model.tariff.unwrap().tier.is_some());
    assert!(parse(&dated, None).unwrap().model.tariff.unwrap().tier.is_none());
    let gone = parse(&text.replace("sonnet-4-6", "opus-5"), None).unwrap_err().to_string();
    assert!(gone.contains("--prices FILE"), "{gone}");
    // several bands aren't simulated, and that is said
    let bands = r#"{"x": {"litellm_provider": "y", "tiered_pricing": [
        {"range": [0, 1000], "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6},
        {"range": [1000, 2000], "input_cost_per_token": 2e-6, "output_cost_per_token": 2e-6},
        {"range": [2000, 9000], "input_cost_per_token": 3e-6, "output_cost_per_token": 3e-6}]}}"#;
    let request = Request { sheet: Some(imported(bands).sheet), ..Request::default() };
    let text = "[model]\nname = \"x\"\n[session]\nturns = 2\noutput = 10\n";
    let error = Scenario::parse(text, "a.toml", "".as_ref(), &request).unwrap_err().to_string();
    assert!(error.contains("several long-context bands"), "{error}");
}
