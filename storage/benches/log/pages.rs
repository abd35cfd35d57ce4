//! What a page of 100 costs as the log grows: the same question put to logs of rising size.

use std::path::Path;

use crate::grown::{Grown, Running};
use crate::questions::{Question, all};
use crate::setting;
use crate::table::{head, median, number, quantile, row};

const SIZES: [u64; 3] = [100_000, 1_000_000, 10_000_000];
/// Times that each question is put, each time at another place.
const ASKED: usize = 48;
/// A question is not put any more once it took this long in all, in milliseconds.
const QUESTION_MILLIS_MAX: f64 = 4_000.0;

struct Cost {
    first: f64,
    p50: f64,
    p95: f64,
    items: usize,
    early: usize,
    asked: usize,
}

pub fn run(place: &Path) {
    let events_max = setting("BENCH_EVENTS_MAX", 10_000_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let questions = all();
    let mut columns: Vec<(u64, Vec<Cost>)> = Vec::new();
    for events in SIZES.into_iter().filter(|events| *events <= events_max) {
        let grown = Grown::of(place, events);
        let first = runtime.block_on(first_pages(&grown, &questions));
        columns.push((events, runtime.block_on(ask_all(&grown, &questions, &first))));
    }
    report(&questions, &columns);
}

/// Each question as the first one after a start, with the index as it is then.
async fn first_pages(grown: &Grown, questions: &[Question]) -> Vec<f64> {
    let prepare = grown.open();
    prepare.settled().await;
    prepare.close().await;
    let mut first = Vec::new();
    for (number, question) in questions.iter().enumerate() {
        let running = grown.open();
        let place = &grown.places[number * 7 % grown.places.len()];
        first.push(timed(&running, question, place).await.0);
        running.close().await;
    }
    first
}

async fn ask_all(grown: &Grown, questions: &[Question], first: &[f64]) -> Vec<Cost> {
    let running = grown.open();
    running.settled().await;
    let mut costs = Vec::new();
    for (question, first) in questions.iter().zip(first) {
        let (mut samples, mut items, mut early) = (Vec::new(), 0, 0);
        while samples.len() < ASKED && samples.iter().sum::<f64>() < QUESTION_MILLIS_MAX {
            let place = &grown.places[samples.len() * 5 % grown.places.len()];
            let (took, answer) = timed(&running, question, place).await;
            samples.push(took);
            items += answer.items;
            early += usize::from(answer.early);
        }
        let (p50, p95) = (median(&mut samples), quantile(&mut samples, 0.95));
        costs.push(Cost { first: *first, p50, p95, items: items / samples.len(), early, asked: samples.len() });
    }
    running.close().await;
    costs
}

async fn timed(running: &Running, question: &Question, place: &crate::grown::Place) -> (f64, crate::questions::Answer) {
    let started = std::time::Instant::now();
    let answer = question.ask(&running.ledger, place).await;
    (started.elapsed().as_secs_f64() * 1000.0, answer)
}

fn report(questions: &[Question], columns: &[(u64, Vec<Cost>)]) {
    let mut titles = vec!["a page of 100: p50 / p95 / first after a start, ms".to_owned()];
    titles.extend(columns.iter().map(|(events, _)| format!("{events} events")));
    titles.extend(["p50, largest to smallest log".into(), "p95".into(), "items".into()]);
    head(&titles.iter().map(String::as_str).collect::<Vec<_>>());
    for (place, question) in questions.iter().enumerate() {
        let mut cells = vec![question.label()];
        for (_, costs) in columns {
            let cost = &costs[place];
            let early =
                if cost.early > 0 { format!(" ({} of {} early)", cost.early, cost.asked) } else { String::new() };
            cells.push(format!("{} / {} / {}{early}", number(cost.p50), number(cost.p95), number(cost.first)));
        }
        let (smallest, largest) = (&columns[0].1[place], &columns[columns.len() - 1].1[place]);
        cells.push(number(largest.p50 / smallest.p50));
        cells.push(number(largest.p95 / smallest.p95));
        cells.push(largest.items.to_string());
        row(&cells);
    }
}
