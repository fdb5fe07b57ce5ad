//! How public clients retry, by name: facts read from their source code in November 2026.

use crate::model::{Jitter, Retry};

/// A client's policy.
#[derive(Debug)]
pub(super) struct Preset {
    /// What a scenario calls it.
    pub name: &'static str,
    /// Its constants.
    pub retry: Retry,
}

const fn preset(name: &'static str, attempts: u32, base_s: f64, cap_s: f64, jitter: Jitter) -> Preset {
    let retry = Retry { attempts, base_s, rejected_base_s: base_s, cap_s, jitter, deadline_s: f64::INFINITY };
    Preset { name, retry }
}

/// The presets. Where a client has a budget of retries that all of its calls share (botocore: 500 tokens, 14 a retry), a
/// session is too short to use it up, and it is left out.
pub(super) const PRESETS: &[Preset] = &[
    // anthropic 2.14.0 and openai 3.57.0, `_base_client.py`: 2 retries, min(0.5 · 2^n, 8) s less up to a quarter
    preset("anthropic-sdk", 3, 0.5, 8.0, Jitter::Quarter),
    preset("openai-sdk", 3, 0.5, 8.0, Jitter::Quarter),
    // google-genai 3.6.1, `_api_client.py`: 5 attempts, min(2^n + U(0, 1), 60) s
    preset("google-genai", 5, 1.0, 60.0, Jitter::Plus { spread_s: 1.0, capped: true }),
    // botocore 1.44.8, `retries/standard.py`: 3 attempts, U(0, 1) · min(scale · 2^n, 20) s, scale 0.05, throttled 1
    Preset {
        name: "botocore-standard",
        retry: Retry {
            attempts: 3,
            base_s: 0.05,
            rejected_base_s: 1.0,
            cap_s: 20.0,
            jitter: Jitter::Full,
            deadline_s: f64::INFINITY,
        },
    },
    // LiteLLM 1.110.2, `constants.py`, `utils.py`: 2 retries, min(0.5 · 2^n, 8) + U(0, 0.75) s
    preset("litellm", 3, 0.5, 8.0, Jitter::Plus { spread_s: 0.75, capped: false }),
];
