//! What public bug reports of tools like this one say went wrong, each with the right value: groups A, B, C and E of the
//! collection that the project keeps, and what of D is a usage object. A test is named after its row.
//!
//! B5 states a sum without the tokens it is of, so there is nothing to compute.

use agent_sim::price::{Line, PicoUsdPerToken, PriceError, Service, Sheet, Streamed, Usage};
use jiff::civil::{Date, date};
use serde_json::{Value, json};

/// Models of the reports that the built-in sheet doesn't have.
const OLD: &str = "provider\tmodel\tinput\toutput\tread\twrite_5m\twrite_1h
anthropic\tclaude-3-7-sonnet\t3\t15\t0.3\t3.75\t6
anthropic\tclaude-3-5-haiku\t0.8\t4\t0.08\t1\t1.6
openai\tgpt-5.4-pro\t30\t180\t\t\t
openai\twriter\t5\t30\t0.5\t6.25\t
google\tgemini-2.0-flash\t0.1\t0.4\t0.025\t\t
";

fn old() -> Sheet {
    Sheet::parse(OLD).unwrap()
}

fn usd_on(sheet: &Sheet, model: &str, usage: &Usage, day: Option<Date>) -> f64 {
    sheet.cost(model, usage, day).unwrap().total().usd()
}

fn usd(model: &str, usage: &Usage) -> f64 {
    usd_on(Sheet::embedded(), model, usage, None)
}

#[track_caller]
fn is(got: f64, want: f64) {
    assert!((got - want).abs() < 1e-9, "{got}, want {want}");
}

fn anthropic(usage: &Value) -> Usage {
    Usage::anthropic(usage).unwrap().usage
}

fn prompt(tokens: u64) -> Usage {
    Usage { input_tokens: tokens, ..Usage::default() }
}

#[test]
fn a1_tokens_written_are_billed_once() {
    let usage = anthropic(&json!({"input_tokens": 3, "cache_creation_input_tokens": 12_304, "output_tokens": 550}));
    is(usd_on(&old(), "claude-3-7-sonnet", &usage, None), 0.054399);
}

#[test]
fn a2_tokens_read_are_no_input() {
    let usage = anthropic(&json!({"input_tokens": 4, "cache_read_input_tokens": 2_455, "output_tokens": 23}));
    is(usd_on(&old(), "claude-3-5-haiku", &usage, None), 0.0002916);
}

#[test]
fn a4_exclusive_input_isnt_lessened() {
    let usage =
        anthropic(&json!({"input_tokens": 51_232, "cache_read_input_tokens": 1_188_096, "output_tokens": 12_909}));
    // a sum over many requests: no single prompt is this long
    let bill = Sheet::embedded().cost_of_aggregate("gpt-5", &usage, None).unwrap();
    is(bill.total().usd(), 0.341642);
}

#[test]
fn a6_each_token_once_and_never_less_than_none() {
    let fully =
        json!({"prompt_tokens": 1_000, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 1_000}});
    let read = Usage::openai(&fully).unwrap();
    assert_eq!((read.usage.input_tokens, read.usage.cache_read_tokens, read.remarks.len()), (0, 1_000, 0));
    let beyond = json!({"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 128}});
    let read = Usage::openai(&beyond).unwrap();
    assert_eq!((read.usage.input_tokens, read.usage.cache_read_tokens, read.remarks.len()), (0, 128, 1));
    let split = json!({"prompt_tokens": 120, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 56, "completion_tokens": 9});
    let read = Usage::read(&split).unwrap();
    assert_eq!((read.usage.input_tokens, read.usage.cache_read_tokens, read.usage.prompt_tokens()), (56, 64, 120));
}

#[test]
fn a7_native_and_otel_counts_have_the_same_total() {
    let native = json!({"input_tokens": 5, "cache_read_input_tokens": 128_955, "cache_creation_input_tokens": 1_253, "output_tokens": 1});
    let otel = json!({
        "gen_ai.usage.input_tokens": 130_213, "gen_ai.usage.cache_read.input_tokens": 128_955,
        "gen_ai.usage.cache_creation.input_tokens": 1_253, "gen_ai.usage.output_tokens": 1
    });
    let (native, otel) = (Usage::read(&native).unwrap().usage, Usage::read(&otel).unwrap().usage);
    assert_eq!((native.prompt_tokens(), otel.prompt_tokens()), (130_213, 130_213));
    assert_eq!(native, otel);
}

#[test]
fn a8_inclusive_input_holds_what_was_cached() {
    let usage = json!({"input_tokens": 17_903, "input_tokens_details": {"cached_tokens": 17_817}, "output_tokens": 1});
    let usage = Usage::read(&usage).unwrap().usage;
    assert_eq!((usage.input_tokens, usage.cache_read_tokens), (86, 17_817));
}

#[test]
fn a9_input_smaller_than_its_cache_is_exclusive() {
    let attributes = json!({
        "gen_ai.usage.input_tokens": 19, "gen_ai.usage.cache_read.input_tokens": 39_000, "gen_ai.usage.output_tokens": 0
    });
    let read = Usage::otel(&attributes).unwrap();
    assert_eq!((read.usage.input_tokens, read.usage.cache_read_tokens), (19, 39_000));
    assert!(read.remarks[0].contains("leave them out"), "{:?}", read.remarks);
    let bill = Sheet::embedded().cost("claude-sonnet-4-6", &read.usage, None).unwrap();
    is(bill.items[0].amount.usd(), 19.0 * 3e-6);
}

#[test]
fn a10_one_call_counted_in_two_ways_costs_the_same() {
    let inclusive = json!({
        "gen_ai.usage.input_tokens": 21_000, "gen_ai.usage.cache_read.input_tokens": 20_000, "gen_ai.usage.output_tokens": 9
    });
    let exclusive = json!({
        "gen_ai.usage.input_tokens": 1_000, "gen_ai.usage.cache_read.input_tokens": 20_000, "gen_ai.usage.output_tokens": 9
    });
    let bedrock = json!({"inputTokens": 1_000, "cacheReadInputTokens": 20_000, "outputTokens": 9});
    let all = [inclusive, exclusive, bedrock].map(|usage| Usage::read(&usage).unwrap().usage);
    assert!(all.iter().all(|usage| *usage == all[0] && usage.prompt_tokens() == 21_000), "{all:?}");
}

#[test]
fn a11_a_streams_events_repeat_its_counts() {
    let mut streamed = Streamed::default();
    streamed.event(&json!({"input_tokens": 317, "cache_creation_input_tokens": 4_425, "cache_read_input_tokens": 0, "output_tokens": 1}));
    streamed.event(&json!({"cache_creation_input_tokens": 4_425, "output_tokens": 200}));
    let usage = anthropic(&streamed.usage());
    assert_eq!((usage.input_tokens, usage.written_tokens(), usage.output_tokens), (317, 4_425, 200));
}

#[test]
fn a12_openai_writes_are_billed_where_they_have_a_price() {
    let usage = |written: u64| {
        let usage = json!({
            "input_tokens": 10_000, "output_tokens": 0,
            "input_tokens_details": {"cached_tokens": 2_000, "cache_write_tokens": written}
        });
        Usage::read(&usage).unwrap().usage
    };
    let read = usage(4_000);
    assert_eq!((read.input_tokens, read.cache_read_tokens, read.written_tokens()), (4_000, 2_000, 4_000));
    let sheet =
        Sheet::parse("provider\tmodel\tinput\toutput\tread\twrite_30m\nopenai\twriter\t5\t30\t0.5\t6.25\n").unwrap();
    is(usd_on(&sheet, "writer", &read, None), (4_000.0 * 5.0 + 2_000.0 * 0.5 + 4_000.0 * 6.25) / 1e6);
    // before GPT-5.6 a write costs what input does
    is(usd("gpt-5.4", &usage(4_000)), usd("gpt-5.4", &usage(0)));
    // half a day is dearer than half an hour
    let long = json!({
        "input_tokens": 10_000, "output_tokens": 0,
        "input_tokens_details": {"cache_write_tokens": 4_000, "cache_write_tokens_details": {"ttl_12h_tokens": 1_000}}
    });
    let long = Usage::read(&long).unwrap().usage;
    is(usd("gpt-6.1-sol", &long), (6_000.0 * 2.0 + 3_000.0 * 2.5 + 1_000.0 * 5.0) / 1e6);
}

#[test]
fn a13_the_bill_says_which_tier_it_took() {
    let usage = json!({"promptTokenCount": 262_960, "cachedContentTokenCount": 257_955, "candidatesTokenCount": 1_744});
    let bill = Sheet::embedded().cost("gemini-2.5-pro", &Usage::read(&usage).unwrap().usage, None).unwrap();
    assert_eq!(bill.tier_from_tokens, Some(200_001));
    is(bill.total().usd(), (5_005.0 * 2.5 + 257_955.0 * 0.25 + 1_744.0 * 15.0) / 1e6);
    // the report's $0.1999 has cached tokens at 0.625, the price before it fell
    let sheet = "provider\tmodel\tinput\toutput\tread\ttier_over\ttier_input\ttier_output\ttier_read\n\
                 google\tthen\t1.25\t10\t0.31\t200000\t2.5\t15\t0.625\n";
    is(
        (usd_on(&Sheet::parse(sheet).unwrap(), "then", &Usage::gemini(&usage).unwrap().usage, None) * 1e4).round(),
        1999.0,
    );
}

#[test]
fn a14_gemini_counts_cached_tokens_in_the_prompt() {
    let usage = json!({"promptTokenCount": 100_200, "cachedContentTokenCount": 100_000, "candidatesTokenCount": 0});
    let usage = Usage::gemini(&usage).unwrap().usage;
    assert_eq!((usage.input_tokens, usage.cache_read_tokens), (200, 100_000));
}

#[test]
fn a16_each_model_has_its_own_price_of_reading() {
    let read = Usage { cache_read_tokens: 1_000_000, ..Usage::default() };
    is(usd_on(&old(), "gemini-2.0-flash", &read, None), 0.025);
    is(usd("gemini-2.5-flash", &read), 0.03);
    is(usd("claude-opus-5-5", &read), 0.2);
}

#[test]
fn b1_an_hour_costs_twice_the_input() {
    let split = json!({
        "input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 1_000_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 600_000, "ephemeral_1h_input_tokens": 400_000}
    });
    is(usd("claude-opus-4-8", &anthropic(&split)), 7.75);
    let untold = json!({"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 1_000_000});
    is(usd("claude-opus-4-8", &anthropic(&untold)), 6.25);
}

#[test]
fn b2_all_for_an_hour() {
    let usage = json!({
        "input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 2_000_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 2_000_000}
    });
    let bill = Sheet::embedded().cost_of_aggregate("claude-sonnet-4-5", &anthropic(&usage), None).unwrap();
    is(bill.total().usd(), 12.0);
}

#[test]
fn b6_a_split_that_doesnt_sum_up_is_told_and_billed() {
    let usage = json!({
        "input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 216_447_883_u64,
        "cache_creation": {"ephemeral_5m_input_tokens": 47_745_500, "ephemeral_1h_input_tokens": 168_726_465}
    });
    let read = Usage::anthropic(&usage).unwrap();
    assert!(read.remarks[0].contains("216471965") && read.remarks[0].contains("216447883"), "{:?}", read.remarks);
    let of = |usage: &Usage| Sheet::embedded().cost_of_aggregate("claude-opus-4-8", usage, None).unwrap().total().usd();
    let untold = Usage { cache_write_unknown_tokens: 216_447_883, ..Usage::default() };
    let more = of(&read.usage) / of(&untold) - 1.0;
    assert_eq!((more * 1000.0).round() / 10.0, 46.8);
}

#[test]
fn b7_an_hour_on_fable() {
    let usage = json!({
        "input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 100_000,
        "cache_creation": {"ephemeral_1h_input_tokens": 100_000}
    });
    is(usd("claude-fable-5", &anthropic(&usage)), 2.0);
}

#[test]
fn b8_a_price_that_nothing_reads_is_an_error() {
    let text = "provider\tmodel\tinput\toutput\twrite_2h\nanthropic\tx\t1\t2\t3\n";
    assert!(Sheet::parse(text).unwrap_err().to_string().contains("write_2h"));
    // and every price that is read is billed: doubling any of them changes the bill
    let columns =
        ["input", "output", "read", "write_any", "write_5m", "write_30m", "write_1h", "write_12h", "storage_hour"];
    let bill = |double: Option<usize>| {
        let prices: Vec<String> =
            (0..columns.len()).map(|i| if double == Some(i) { "2".to_owned() } else { "1".to_owned() }).collect();
        let text = format!("provider\tmodel\t{}\nanthropic\tx\t{}\n", columns.join("\t"), prices.join("\t"));
        let usage = Usage {
            input_tokens: 10,
            cache_read_tokens: 10,
            cache_write_tokens: [(60, 10), (300, 10), (1_800, 10), (3_600, 10), (43_200, 10)].into(),
            output_tokens: 10,
            stored_token_s: 36_000,
            ..Usage::default()
        };
        usd_on(&Sheet::parse(&text).unwrap(), "x", &usage, None)
    };
    for (index, column) in columns.iter().enumerate() {
        assert!(bill(Some(index)) > bill(None), "{column}");
    }
    // and so is every price of a long prompt
    let tier: Vec<String> = columns[..8].iter().map(|column| format!("tier_{column}")).collect();
    let bill = |double: Option<usize>| {
        let prices: Vec<&str> = (0..tier.len()).map(|i| if double == Some(i) { "2" } else { "1" }).collect();
        let text = format!(
            "provider\tmodel\tinput\toutput\ttier_over\t{}\nanthropic\tx\t1\t1\t5\t{}\n",
            tier.join("\t"),
            prices.join("\t")
        );
        let usage = Usage {
            input_tokens: 10,
            cache_read_tokens: 10,
            cache_write_tokens: [(60, 10), (300, 10), (1_800, 10), (3_600, 10), (43_200, 10)].into(),
            output_tokens: 10,
            ..Usage::default()
        };
        usd_on(&Sheet::parse(&text).unwrap(), "x", &usage, None)
    };
    for (index, column) in tier.iter().enumerate() {
        assert!(bill(Some(index)) > bill(None), "{column}");
    }
}

#[test]
fn b9_nothing_written_is_no_evidence_of_a_lifetime() {
    let usage = json!({
        "input_tokens": 7, "output_tokens": 1, "cache_creation_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0}
    });
    let usage = anthropic(&usage);
    assert!(usage.cache_write_tokens.is_empty() && usage.cache_write_unknown_tokens == 0);
}

#[test]
fn c1_a_tier_is_a_cliff_for_the_whole_request() {
    for (tokens, want) in [(200_000, 0.60), (200_001, 1.200006), (1_000_000, 6.00)] {
        is(usd("claude-sonnet-4-5", &prompt(tokens)), want);
    }
}

#[test]
fn c3_output_moves_too() {
    is(usd("gpt-5.4", &Usage { output_tokens: 50_000, ..prompt(300_000) }), 2.625);
}

#[test]
fn c6_three_hundred_thousand_on_sonnet() {
    is(usd("claude-sonnet-4-5", &prompt(300_000)), 1.80);
}

#[test]
fn c7_a_surcharge_ends_on_its_day() {
    for (model, before, after) in [("claude-opus-4-6", 3.0, 1.5), ("claude-sonnet-4-6", 1.8, 0.9)] {
        let on = |day| usd_on(Sheet::embedded(), model, &prompt(300_000), Some(day));
        is(on(date(2026, 3, 12)), before);
        is(on(date(2026, 3, 13)), after);
    }
}

#[test]
fn c8_the_highest_band_that_is_reached() {
    let entry = |from: u64, to: u64, usd: f64| json!({"range": [from, to], "input_cost_per_token": usd * 1e-6, "output_cost_per_token": 9e-6});
    let bands = [
        entry(0, 32_000, 1.0),
        entry(32_000, 128_000, 2.0),
        entry(128_000, 256_000, 3.0),
        entry(256_000, 1_000_000, 4.0),
    ];
    let table = json!({"dashscope/qwen-plus": {"litellm_provider": "dashscope", "tiered_pricing": bands}});
    let sheet = Sheet::import(&table.to_string(), "qwen.json", date(2026, 11, 30)).unwrap().sheet;
    for (tokens, price) in [(32_000, 1.0), (32_001, 2.0), (200_000, 3.0), (256_000, 3.0), (500_000, 4.0)] {
        is(usd_on(&sheet, "qwen-plus", &prompt(tokens), None), tokens as f64 * price / 1e6);
    }
}

#[test]
fn c9_output_doesnt_choose_the_tier() {
    let bill = Sheet::embedded().cost("gpt-5.4", &Usage { output_tokens: 100_000, ..prompt(200_000) }, None).unwrap();
    assert_eq!(bill.tier_from_tokens, None);
}

#[test]
fn c10_a_sum_of_requests_has_no_tier() {
    let sheet = Sheet::embedded();
    let mut sum = Usage::default();
    for _ in 0..10 {
        sum.add(&prompt(50_000));
    }
    let bill = sheet.cost_of_aggregate("claude-sonnet-4-5", &sum, None).unwrap();
    assert_eq!(bill.tier_from_tokens, None);
    is(bill.total().usd(), 10.0 * usd("claude-sonnet-4-5", &prompt(50_000)));
}

#[test]
fn c11_what_counts_towards_a_tier_is_the_tables_choice() {
    let sheet = |counts: &str| {
        let text = format!(
            "provider\tmodel\tinput\toutput\tread\ttier_over\ttier_counts\ttier_input\ttier_output\ttier_read\n\
             x\ty\t3\t15\t0.3\t200000\t{counts}\t6\t22.5\t0.6\n"
        );
        Sheet::parse(&text)
    };
    let usage = Usage { cache_read_tokens: 190_000, ..prompt(20_000) };
    let tier = |counts: &str| sheet(counts).unwrap().cost("y", &usage, None).unwrap().tier_from_tokens;
    assert_eq!((tier("all"), tier(""), tier("uncached")), (Some(200_001), Some(200_001), None));
    assert!(sheet("output").is_err());
}

#[test]
fn d13_reasoning_is_counted_once() {
    let openai = json!({
        "input_tokens": 14_746, "output_tokens": 1_944, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 1_360}
    });
    is(usd_on(&old(), "gpt-5.4-pro", &Usage::read(&openai).unwrap().usage, None), 0.7923);
    let gemini = json!({"promptTokenCount": 10, "candidatesTokenCount": 584, "thoughtsTokenCount": 1_360});
    assert_eq!(Usage::read(&gemini).unwrap().usage.output_tokens, 1_944);
}

#[test]
fn e2_batch_and_cache_discounts_compose_by_rule() {
    let usage = |service: &str| {
        anthropic(&json!({
            "input_tokens": 1_000_000, "cache_read_input_tokens": 1_000_000, "output_tokens": 1_000_000, "service_tier": service
        }))
    };
    let aggregate = |model: &str, usage: &Usage| Sheet::embedded().cost_of_aggregate(model, usage, None);
    is(aggregate("claude-opus-4-8", &usage("standard")).unwrap().total().usd(), 30.5);
    is(aggregate("claude-opus-4-8", &usage("batch")).unwrap().total().usd(), 15.25);
    // Google's older models don't lower the price of a read once more
    let read = Usage { cache_read_tokens: 100_000, service: Service::Flex, ..Usage::default() };
    is(usd("gemini-2.5-flash", &read), 0.003);
    let read = Usage { service: Service::Batch, ..read };
    assert!(
        Sheet::embedded()
            .cost("gemini-2.5-flash", &read, None)
            .unwrap_err()
            .to_string()
            .contains("a cache read in such")
    );
    assert!(Sheet::embedded().cost("gpt-4.1", &Usage { service: Service::Flex, ..prompt(5) }, None).is_err());
    // Groq gives the larger of the two discounts
    is(aggregate("gpt-oss-120b", &usage("batch")).unwrap().total().usd(), (0.075 + 0.075) + 0.3);
    // a service without a known price has none
    let error = aggregate("claude-opus-4-8", &usage("priority")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the price sheet has no price of claude-opus-4-8 for service_tier priority at anthropic"
    );
    is(aggregate("grok-4.7", &usage("batch")).unwrap().total().usd(), 0.8 * (2.0 + 0.5 + 6.0));
    assert!(aggregate("qwen3.8-max", &usage("batch")).is_err());
}

#[test]
fn e3_a_batch_costs_half_of_every_line() {
    let usage = Usage {
        input_tokens: 1_001,
        cache_read_tokens: 77,
        cache_write_tokens: [(300, 501), (3_600, 13)].into(),
        output_tokens: 99,
        ..Usage::default()
    };
    let batch = Usage { service: Service::Batch, ..usage.clone() };
    let bill = |usage: &Usage| Sheet::embedded().cost("claude-sonnet-5-5", usage, None).unwrap();
    for (full, half) in bill(&usage).items.iter().zip(&bill(&batch).items) {
        assert_eq!((full.line, full.amount.0), (half.line, 2 * half.amount.0));
    }
}

#[test]
fn e4_an_unknown_model_is_an_error() {
    let error = Sheet::embedded().cost("claude-sonnet-9", &prompt(1), None).unwrap_err();
    assert!(matches!(error, PriceError::UnknownModel(_)), "{error}");
    // and so is a price that is needed and missing
    let sheet = Sheet::parse("provider\tmodel\tinput\toutput\nx\ty\t1\t2\n").unwrap();
    let read = Usage { cache_read_tokens: 5, ..prompt(1) };
    assert_eq!(
        sheet.cost("y", &read, None).unwrap_err().to_string(),
        "the price sheet has no price of y for a cache read"
    );
    assert!(sheet.cost("y", &prompt(1), None).is_ok());
}

#[test]
fn e5_prices_have_days_and_sources() {
    let row = Sheet::embedded().find("claude-sonnet-5", None).unwrap();
    assert_eq!((row.input, row.output), (PicoUsdPerToken(2_000_000), PicoUsdPerToken(10_000_000)));
    assert!(!row.source.is_empty() && row.source_date.starts_with("2026-11"));
}

#[test]
fn e6_a_sheet_is_known_by_its_hash() {
    let hash = |text: &str| Sheet::parse(text).unwrap().sha256().to_owned();
    assert_eq!(hash(OLD), hash(OLD));
    assert_ne!(hash(OLD), hash(&OLD.replace("0.08", "0.09")));
    assert_eq!(Sheet::embedded().sha256().len(), 64);
}

#[test]
fn e7_an_explicit_cache_is_billed_by_the_time_it_was_kept() {
    let kept = |hours: u64| Usage { stored_token_s: 1_000_000 * 3_600 * hours, ..Usage::default() };
    is(usd("gemini-2.5-flash", &kept(1)), 1.00);
    is(usd("gemini-2.5-pro", &kept(2)), 9.00);
    // half an hour of it costs half
    is(usd("gemini-2.5-pro", &Usage { stored_token_s: 1_000_000 * 1_800, ..Usage::default() }), 2.25);
    let bill = Sheet::embedded().cost("gemini-2.5-pro", &kept(1), None).unwrap();
    assert_eq!(bill.items[0].line, Line::Storage);
    assert!(Sheet::embedded().cost("claude-opus-5", &kept(1), None).is_err());
}

#[test]
fn e8_a_table_that_has_drifted_is_told() {
    let table = json!({
        "claude-x": {"litellm_provider": "anthropic", "input_cost_per_token": 3e-6, "output_cost_per_token": 15e-6,
                     "cache_read_input_token_cost": 4e-6, "cache_creation_input_token_cost": 3.75e-6},
        "claude-y": {"litellm_provider": "anthropic", "input_cost_per_token": 3e-6, "output_cost_per_token": 15e-6,
                     "cache_read_input_token_cost": 3e-7, "cache_creation_input_token_cost": 3e-7}
    });
    let remarks = Sheet::import(&table.to_string(), "x.json", date(2026, 11, 30)).unwrap().remarks.join("\n");
    assert!(remarks.contains("claude-x: reading the cache is dearer than input"), "{remarks}");
    assert!(remarks.contains("claude-y: writing to the cache is cheaper than input"), "{remarks}");
}

#[test]
fn a_usage_of_nobody_is_an_error() {
    for (usage, says) in [
        (json!({"tokens": 5}), "isn't a usage object"),
        (json!({"input_tokens": 5}), "no `output_tokens`"),
        (json!({"input_tokens": -5, "output_tokens": 1}), "`input_tokens` must be a whole number"),
        (
            json!({"input_tokens": 5, "output_tokens": 1, "cache_creation": {"ephemeral_1h_input_tokens": "7"}}),
            "whole number",
        ),
        (json!("x"), "isn't a usage object"),
    ] {
        let error = Usage::read(&usage).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn compaction_is_a_request_of_its_own() {
    let usage = json!({
        "input_tokens": 60_000, "output_tokens": 5,
        "iterations": [{"type": "message", "input_tokens": 60_000, "output_tokens": 5},
                       {"type": "compaction", "input_tokens": 70_000, "output_tokens": 2_000}]
    });
    let read = Usage::anthropic(&usage).unwrap();
    assert_eq!(
        (read.usage.input_tokens, read.also[0].usage.input_tokens, read.also[0].usage.output_tokens),
        (60_000, 70_000, 2_000)
    );
    // neither prompt is long, and their sum would be
    let bill = |usage: &Usage| Sheet::embedded().cost("claude-haiku-5-5", usage, None).unwrap().tier_from_tokens;
    assert_eq!((bill(&read.usage), bill(&read.also[0].usage)), (None, None));
}

#[test]
fn lifetimes_that_are_told_are_billed() {
    let bedrock = json!({
        "inputTokens": 0, "outputTokens": 0, "cacheWriteInputTokens": 1_000_000,
        "cacheDetails": [{"ttl": "1h", "inputTokens": 1_000_000}]
    });
    is(usd("claude-opus-4-8", &Usage::read(&bedrock).unwrap().usage), 10.0);
    // what a split leaves out is written too
    let part = json!({
        "input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 1_000,
        "cache_creation": {"ephemeral_1h_input_tokens": 400}
    });
    let read = Usage::anthropic(&part).unwrap();
    assert_eq!(
        (read.usage.prompt_tokens(), read.usage.cache_write_unknown_tokens, read.remarks.len()),
        (1_000, 600, 1)
    );
    // an untold lifetime is the price for all of them, or the shortest, and never a long one
    let untold = Usage { cache_write_unknown_tokens: 1_000_000, ..Usage::default() };
    let cost = |columns: &str, prices: &str| {
        let text = format!("provider\tmodel\tinput\toutput\t{columns}\nx\ty\t1\t2\t{prices}\n");
        Sheet::parse(&text).unwrap().cost("y", &untold, None).map(|bill| bill.total().usd())
    };
    assert_eq!(cost("write_any\twrite_12h", "1\t20").unwrap(), 1.0);
    assert_eq!(cost("write_5m\twrite_1h", "3\t4").unwrap(), 3.0);
    assert!(cost("write_1h", "4").is_err());
}

#[test]
fn common_objects_are_told_apart() {
    let codex =
        json!({"input_tokens": 100_000, "cached_input_tokens": 98_000, "output_tokens": 10, "total_tokens": 100_010});
    let usage = Usage::read(&codex).unwrap().usage;
    assert_eq!((usage.input_tokens, usage.cache_read_tokens), (2_000, 98_000));
    let older = json!({
        "gen_ai.usage.input_tokens": 130_000, "gen_ai.usage.cache_read_input_tokens": 128_000, "gen_ai.usage.output_tokens": 1
    });
    assert_eq!(Usage::read(&older).unwrap().usage.input_tokens, 2_000);
    // the sum of all tells that the input leaves the cache out
    let exclusive = json!({
        "gen_ai.usage.input_tokens": 50_000, "gen_ai.usage.cache_read.input_tokens": 40_000,
        "gen_ai.usage.output_tokens": 10, "gen_ai.usage.total_tokens": 90_010
    });
    assert_eq!(Usage::read(&exclusive).unwrap().usage.input_tokens, 50_000);
    let advised = json!({
        "input_tokens": 1, "output_tokens": 1,
        "iterations": [{"type": "advisor_message", "model": "claude-opus-5", "input_tokens": 9, "output_tokens": 9}]
    });
    assert_eq!(Usage::read(&advised).unwrap().also[0].model.as_deref(), Some("claude-opus-5"));
    let absurd = json!({"input_tokens": u64::MAX, "output_tokens": 1, "cache_read_input_tokens": u64::MAX});
    assert!(Usage::read(&absurd).is_err());
}
