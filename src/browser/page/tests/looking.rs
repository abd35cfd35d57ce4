//! Snapshots, their references, content and pictures.

use std::time::Instant;

use super::*;
use crate::browser::page::{ClickOptions, Clip, ScreenshotOptions};

#[tokio::test(flavor = "multi_thread")]
async fn references_act_on_their_node_and_die_with_it() {
    let bench = Bench::start().await;
    let body = "<h1>Title <b>bold</b></h1><p>Some <i>words</i> here.</p><a href='/landed'>Away</a><button id=save onclick=\"this.textContent='Saved'\">Save</button>\
        <input aria-label=Email value=me@x><input type=password aria-label=Pin value=1234><input type=checkbox aria-label=Agree checked>\
        <select aria-label=Pick><option>One<option selected>Two</select><ul><li>first<li><a href=#>second</a></ul><img alt=Logo width=10 height=10><button disabled>No</button>";
    bench.show(body).await;
    let page = &bench.page;
    let snapshot = page.snapshot(soon()).await.expect("a snapshot");
    let tree = &snapshot.tree;
    for part in [
        "- heading \"Title bold\" [level=1] [ref=e",
        "- paragraph: Some words here.\n",
        "- link \"Away\"",
        "textbox \"Email\" [ref=e",
        ": me@x\n",
        "[hidden]",
        "checkbox \"Agree\" [checked]",
        "- listitem: first\n",
        "option \"Two\" [selected]",
        "- img \"Logo\"",
        "button \"No\" [disabled]",
    ] {
        assert!(tree.contains(part), "{part} in\n{tree}");
    }
    assert!(!tree.contains("1234") && !tree.contains("\u{2022}"), "{tree}");
    let reference = |tree: &str, name: &str| -> String {
        let line = tree.lines().find(|line| line.contains(name)).expect(name);
        let start = line.find("[ref=").expect("a reference") + 5;
        line[start..].split(']').next().expect("its end").to_owned()
    };
    let save = reference(tree, "button \"Save\"");
    page.click(&save, &ClickOptions::default(), soon()).await.expect("clicked");
    page.fill(&reference(tree, "Email"), "you", soon()).await.expect("filled");
    let again = page.snapshot(soon()).await.expect("a snapshot");
    assert_eq!(reference(&again.tree, "button \"Saved\""), save, "{}", again.tree);
    bench.value("void save.remove()").await;
    let gone = page.click(&save, &ClickOptions::default(), soon()).await;
    assert!(matches!(&gone, Err(PageError::StaleRef { reference, .. }) if *reference == save), "{gone:?}");
    bench.show("<p>other").await;
    let gone = page.click(&reference(tree, "link \"Away\""), &ClickOptions::default(), soon()).await;
    assert!(matches!(gone, Err(PageError::StaleRef { .. })), "{gone:?}");
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_elements_fit_their_budget() {
    let bench = Bench::start().await;
    let row = |n: usize| {
        format!(
            "<div><h3>Item {n}</h3><p>Description of item {n}</p><a href='/x{n}'>Open {n}</a><button>Buy {n}</button><input placeholder='Amount {n}'></div>"
        )
    };
    bench.show(&(0..200).map(row).collect::<String>()).await;
    let snapshot = bench.page.snapshot(soon()).await.expect("a snapshot");
    assert!(snapshot.tree.len() < 55_000, "{}", snapshot.tree.len());
    assert_eq!(snapshot.references, 800);
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_have_the_size_they_say() {
    let bench = Bench::start().await;
    bench.show("<div style='width:400px;height:2500px;background:linear-gradient(red,blue)'></div>").await;
    let page = &bench.page;
    let view = page.screenshot(&ScreenshotOptions::default(), soon()).await.expect("a picture");
    let inner = (bench.value("innerWidth").await, bench.value("innerHeight").await);
    assert_eq!((view.width.into(), view.height.into()), inner);
    let full =
        page.screenshot(&ScreenshotOptions { full_page: true, ..Default::default() }, soon()).await.expect("a picture");
    assert!(full.height > 2500 && full.height < 2600, "{}", full.height);
    let clip = Clip { x: 10.0, y: 20.0, width: 30.0, height: 40.0 };
    let part = page
        .screenshot(&ScreenshotOptions { clip: Some(clip), omit_background: true, ..Default::default() }, soon())
        .await
        .expect("a picture");
    assert_eq!((part.width, part.height), (30, 40));
    bench.value("void (document.body.firstChild.style.height = '20000px')").await;
    let tall = page.screenshot(&ScreenshotOptions { full_page: true, ..Default::default() }, soon()).await;
    let tall = tall.expect("its beginning");
    assert!(tall.height == 16_384 && tall.cut_from.is_some_and(|(_, height)| height > 16_384), "{:?}", tall.cut_from);
    let html = page.content(soon()).await.expect("content");
    assert!(html.starts_with("<!DOCTYPE html><html>") && html.contains("linear-gradient"), "{html}");
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_page_or_browser_fails_within_a_second() {
    let bench = Bench::start().await;
    bench.show("<p>x").await;
    let page = bench.page.clone();
    let waiting = tokio::spawn(async move { page.evaluate("new Promise(() => {})", soon()).await });
    let other = bench.browser.open_page(soon()).await.expect("another page");
    let page_id = bench.page.page_id().clone();
    bench.browser.close_page(&page_id, soon()).await.expect("closed");
    let ended = waiting.await.expect("no panic");
    assert!(matches!(ended, Err(PageError::PageClosed)), "{ended:?}");
    assert!(matches!(bench.page.snapshot(soon()).await, Err(PageError::PageClosed)));
    let began = Instant::now();
    // The navigation itself comes to nothing; the crash follows.
    assert!(other.navigate("chrome://crash", LoadState::Load, soon()).await.is_err());
    let crashed = other.evaluate("1", soon()).await;
    assert!(matches!(crashed, Err(PageError::PageCrashed)), "{crashed:?}");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    bench.browser.close("test", soon()).await;
    let gone = other.evaluate("1", soon()).await;
    assert!(matches!(gone, Err(PageError::BrowserGone)), "{gone:?}");
}
