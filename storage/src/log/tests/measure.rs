use super::*;
use std::time::Instant;
use std::os::unix::fs::FileExt;
#[tokio::test(flavor="multi_thread", worker_threads=2)]
async fn measure() {
    let _ = Symbol::fold("x");
    for round in 0..3 {
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    let t = Instant::now();
    let log = Log::open(LogOptions::new(directory.path().join("log"))).unwrap();
    eprintln!("open new {:?}", t.elapsed());
    let text = |n: usize| format!("message {n} {}", "lorem ipsum dolor sit amet consectetur ".repeat(6));
    let mut lat = Vec::new();
    for n in 0..200 { let t = Instant::now(); log.commit(vec![message(Some("a"), &text(n))]).await.unwrap(); lat.push(t.elapsed().as_micros()); }
    lat.sort();
    let bare = |size: usize, count: usize| { let f = std::fs::File::create(directory.path().join("bare")).unwrap(); f.write_all_at(&vec![0u8; size*count+4096], 0).unwrap(); f.sync_all().unwrap(); let b = vec![b'x'; size]; let mut l=Vec::new(); let t0=Instant::now(); for n in 0..count { let t = Instant::now(); f.write_all_at(&b, (n*size) as u64).unwrap(); f.sync_data().unwrap(); l.push(t.elapsed().as_micros()); } let all=t0.elapsed(); l.sort(); (l[l.len()/2], l[l.len()*9/10], all) };
    let b = bare(300, 200);
    eprintln!("{round} single commit p50 {} p90 {} us; bare {} {} us", lat[100], lat[180], b.0, b.1);
    let batches = 200usize;
    let mk = |k: usize| (0..256).map(|n| message(["a","b"].get(n%2).copied(), &text(k*256+n))).collect::<Vec<_>>();
    let t=Instant::now(); for k in 0..batches { std::hint::black_box(mk(k)); } eprintln!("making drafts {:?}", t.elapsed());
    let all: Vec<_> = (0..batches).map(mk).collect();
    let before = log.health().synced_bytes;
    let t = Instant::now();
    for d in all { log.commit(d).await.unwrap(); }
    let took = t.elapsed();
    let size = (log.health().synced_bytes - before) as usize / batches;
    let b = bare(size, batches);
    let raw = bare(300*256, batches);
    eprintln!("{round} 256-batches {:?} = {:.0}/s, {} B per batch; bare same bytes {:?} ratio {:.2}; bare uncompressed {:?}; ratio {:.2}; fsync total {:.3}", took, (batches*256) as f64/took.as_secs_f64(), size, b.2, b.2.as_secs_f64()/took.as_secs_f64(), raw.2, raw.2.as_secs_f64()/took.as_secs_f64(), log.health().fsync_seconds);
    let t = Instant::now(); let mut n=0u64; log.reader().scan(0,&|_|true,&mut |_|{n+=1; ControlFlow::Continue(())}).unwrap(); eprintln!("scan {n} in {:?}", t.elapsed());
    let t = Instant::now(); log.reader().position_before(40_000).unwrap(); let a=t.elapsed(); let t=Instant::now(); log.reader().position_before(40_100).unwrap(); eprintln!("position_before {a:?} then {:?}", t.elapsed());
    drop(log);
    let t = Instant::now(); let _log = Log::open(LogOptions::new(directory.path().join("log"))).unwrap(); eprintln!("reopen {:?}", t.elapsed());
    }
}
