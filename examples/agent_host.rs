//! An agent loop that can't spend more than its budget. It asks a model over HTTP (here a stub in the same process that
//! answers as Anthropic's API does), reserves each call's worst case before it is made, settles the real usage afterwards,
//! and stops in the middle of its work when the next call doesn't fit, with the reason and with what it has done so far.
//!
//! `cargo run --example agent_host`

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use agent_sim::budget::{Budget, Limits, Prices, Refused};
use agent_sim::price::{Sheet, Usage};
use serde_json::{Value, json};

const MODEL: &str = "claude-sonnet-4-6";
const SYSTEM_TOKENS: u64 = 4_000;
const MAX_OUTPUT: u64 = 1_024;

/// What the agent has got done.
#[derive(Debug, Default)]
struct Progress {
    steps: Vec<String>,
    /// Why it stopped before it was done.
    stopped_by: Option<Refused>,
}

/// Answers as the API does: the prompt grows with every call, what was sent before is read from the cache.
fn serve(server: &tiny_http::Server) {
    let mut cached = 0;
    for mut request in server.incoming_requests() {
        let mut body = String::new();
        let read = request.as_reader().read_to_string(&mut body).is_ok();
        let asked: Value = serde_json::from_str(&body).unwrap_or_default();
        let Some(prompt) = asked["prompt_tokens"].as_u64().filter(|_| read) else {
            let _ = request.respond(tiny_http::Response::empty(400));
            continue;
        };
        let output = 180 + prompt % 90;
        let answer = json!({
            "content": format!("step over a prompt of {prompt} tokens"),
            "usage": {
                "input_tokens": 3,
                "cache_read_input_tokens": cached,
                "cache_creation_input_tokens": prompt - cached - 3,
                "output_tokens": output,
            },
        });
        cached = prompt - 3;
        let _ = request.respond(tiny_http::Response::from_string(answer.to_string()));
    }
}

/// One step of the agent's work.
fn ask(address: SocketAddr, prompt_tokens: u64) -> Result<Value, Box<dyn Error>> {
    let asked = json!({ "model": MODEL, "prompt_tokens": prompt_tokens, "max_tokens": MAX_OUTPUT });
    let mut answer = ureq::post(format!("http://{address}/v1/messages")).send_json(asked)?;
    Ok(answer.body_mut().read_json()?)
}

fn work(address: SocketAddr, run: &Budget, prices: &Prices, steps: usize) -> Result<Progress, Box<dyn Error>> {
    let mut progress = Progress::default();
    let mut prompt_tokens = SYSTEM_TOKENS;
    for _ in 0..steps {
        // 1. set aside the most that the call can cost
        let reservation = match run.reserve(&prices.call(prompt_tokens, MAX_OUTPUT)?) {
            Ok(reservation) => reservation,
            Err(refused) => {
                progress.stopped_by = Some(refused);
                break;
            }
        };
        // 2. make it; where it fails, what was set aside is given back
        let answer = ask(address, prompt_tokens)?;
        // 3. say what it came to
        let read = Usage::anthropic(&answer["usage"])?;
        let settled = reservation.settle_read(&read, Sheet::embedded())?;
        progress.steps.push(format!("{}: ${:.6}", answer["content"].as_str().unwrap_or_default(), settled.usd.usd()));
        // the answer and a tool's result enter the history
        prompt_tokens += read.usage.output_tokens + 900;
    }
    Ok(progress)
}

fn main() -> Result<(), Box<dyn Error>> {
    let server = Arc::new(tiny_http::Server::http("127.0.0.1:0").map_err(|e| e.to_string())?);
    let address = server.server_addr().to_ip().ok_or("the stub has no address")?;
    let stub = {
        let server = server.clone();
        thread::spawn(move || serve(&server))
    };
    let prices = Prices::of(Sheet::embedded(), MODEL, Some(300), None)?;
    let day = Budget::new("day", Limits::usd(5.0)?);
    let run = day.child("run", Limits::usd(0.15)?);
    let progress = work(address, &run, &prices, 40)?;
    server.unblock();
    stub.join().map_err(|_| "the stub failed")?;
    for (number, step) in progress.steps.iter().enumerate() {
        println!("{:>2}  {step}", number + 1);
    }
    match &progress.stopped_by {
        Some(refused) => println!("stopped after {} of 40 steps: {refused}", progress.steps.len()),
        None => println!("done in {} steps", progress.steps.len()),
    }
    println!("spent ${:.6} of this run's $0.15, ${:.6} of the day's $5", run.spent().usd(), day.spent().usd());
    Ok(())
}
