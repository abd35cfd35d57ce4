//! Navigation, history, addresses.

use super::*;
use crate::browser::page::{Direction, UrlPattern};

#[tokio::test(flavor = "multi_thread")]
async fn navigation_tells_status_redirect_and_failure() {
    let bench = Bench::start().await;
    let (page, site) = (&bench.page, &bench.site);
    let ok = page.navigate(&site.page("<p>hello"), LoadState::Load, soon()).await.expect("loads");
    assert_eq!(ok.status, Some(200));
    let redirected = page.navigate(&site.url("/redirect"), LoadState::DomContentLoaded, soon()).await.expect("loads");
    assert_eq!((redirected.url, redirected.status), (site.url("/landed"), Some(200)));
    let missing = page.navigate(&site.url("/none"), LoadState::Commit, soon()).await.expect("loads");
    assert_eq!(missing.status, Some(404));
    let broken = page.navigate(&site.url("/status/500"), LoadState::NetworkIdle, soon()).await.expect("loads");
    assert_eq!(broken.status, Some(500));
    let refused = page.navigate("http://127.0.0.1:9/", LoadState::Load, soon()).await;
    assert!(
        matches!(&refused, Err(PageError::NavigationFailed { reason, .. }) if reason.starts_with("net::ERR_")),
        "{refused:?}"
    );
    let after = page.navigate(&site.page("<p>again"), LoadState::Load, soon()).await.expect("loads after a failure");
    assert_eq!(after.status, Some(200));
    let after_url = after.url;
    let download = page.navigate(&site.url("/file"), LoadState::Load, soon()).await.expect("a file came");
    assert!(download.download.is_some() && download.url == after_url, "{download:?}");
    let invalid = page.navigate("http://", LoadState::Load, soon()).await;
    assert!(matches!(&invalid, Err(PageError::NavigationFailed { .. })), "{invalid:?}");
    let hanging = page.navigate(&site.url("/hang"), LoadState::Load, Deadline::after(Duration::from_millis(400))).await;
    assert!(matches!(&hanging, Err(PageError::NavigationTimeout { .. })), "{hanging:?}");
    let after = page.navigate(&site.page("<p>more"), LoadState::Load, soon()).await.expect("loads after a timeout");
    assert_eq!(after.status, Some(200));
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn history_goes_back_and_forth_and_stops_at_its_ends() {
    let bench = Bench::start().await;
    let (page, site) = (&bench.page, &bench.site);
    let (first, second) = (site.page("<p id=one>1"), site.page("<p id=two>2"));
    page.navigate(&first, LoadState::Load, soon()).await.expect("loads");
    page.navigate(&second, LoadState::Load, soon()).await.expect("loads");
    let back = page.go(Direction::Back, LoadState::Load, soon()).await.expect("goes back");
    assert_eq!(back.url, first);
    assert_eq!(bench.value("document.body.firstElementChild.id").await, "one");
    let forward = page.go(Direction::Forward, LoadState::Load, soon()).await.expect("goes forward");
    assert_eq!(forward.url, second);
    let end = page.go(Direction::Forward, LoadState::Load, soon()).await.expect("stays");
    assert_eq!(end.url, second);
    bench.value("void (window.before = 1)").await;
    let again = page.reload(LoadState::Load, soon()).await.expect("reloads");
    assert_eq!((again.url, again.status), (second.clone(), Some(200)));
    assert_eq!(bench.value("typeof window.before").await, "undefined");
    bench.value("void history.pushState({}, '', '/pushed')").await;
    let back = page.go(Direction::Back, LoadState::Load, soon()).await.expect("goes back within the document");
    assert_eq!(back.url, second);
    let hash = format!("{second}#part");
    assert_eq!(page.navigate(&hash, LoadState::Load, soon()).await.expect("moves within").url, hash);
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_end_with_their_fact_or_say_what_did_not_come() {
    let bench = Bench::start().await;
    bench.show("<script>setTimeout(() => { history.pushState({}, '', '/later'); document.body.append(Object.assign(document.createElement('p'), { id: 'late', textContent: 'x' })) }, 200)</script><p id=gone>g</p><script>setTimeout(() => gone.remove(), 300)</script>").await;
    let page = &bench.page;
    let pattern = UrlPattern::text("**/later").expect("a glob");
    assert!(page.wait_for_url(&pattern, soon()).await.expect("comes").ends_with("/later"));
    page.wait_for_selector("#late", super::super::SelectorState::Visible, soon()).await.expect("comes");
    page.wait_for_selector("#gone", super::super::SelectorState::Detached, soon()).await.expect("goes");
    page.wait_for_load_state(LoadState::Load, soon()).await.expect("has loaded");
    let never = UrlPattern::text("http://never/").expect("an address");
    let late = page.wait_for_url(&never, Deadline::after(Duration::from_millis(100))).await;
    assert!(matches!(late, Err(PageError::WaitTimeout { .. })), "{late:?}");
    let late = page
        .wait_for_selector("#never", super::super::SelectorState::Visible, Deadline::after(Duration::from_millis(300)))
        .await;
    assert!(matches!(late, Err(PageError::WaitTimeout { .. })), "{late:?}");
    bench.close().await;
}
