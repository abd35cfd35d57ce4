//! Accessible names and roles in selectors are Chromium's own.

use serde_json::json;

use super::*;
use crate::browser::page::ax::Node;
use crate::browser::page::kit::KitError;
use crate::browser::page::resolve::parse;

/// Elements named in every way there is.
const BODY: &str = include_str!("naming.html");

#[tokio::test(flavor = "multi_thread")]
async fn roles_and_names_are_those_of_the_tree() {
    let bench = Bench::start().await;
    bench.show(BODY).await;
    let page = &bench.page;
    let tree = page.ax_nodes(page.session(), "Accessibility.getFullAXTree", json!({}), soon()).await;
    let Ok(tree) = tree else { panic!("the tree cannot be read") };
    let snapshot = page.snapshot(soon()).await.expect("a snapshot").tree;
    let mut checked = 0;
    for node in &tree {
        let Some((role, name)) = shown(node, &snapshot) else { continue };
        let selector = format!("role={role}[name={}]", json!(name));
        let found = page.matches(&selector, &parse(&selector).expect("valid"), None, false, soon()).await;
        let found = match found {
            Ok(found) => found,
            Err(KitError::Page(error)) => panic!("{selector}: {error}"),
            Err(KitError::Lost) => panic!("{selector}: the document went"),
        };
        let kept = page.keep_backend_node(&found.frame_id, node.backend_node_id.expect("a node"), soon()).await;
        let Ok(kept) = kept else { panic!("{selector}: its node is gone") };
        let both = page.references_of(&found.frame_id, &[found.ids.clone(), vec![kept]].concat(), soon()).await;
        let Ok(both) = both else { panic!("{selector}: its node is gone") };
        let (own, matched) = both.split_last().expect("two or more");
        assert!(matched.contains(own), "{selector} means others: {matched:?} and not {own:?}");
        checked += 1;
    }
    assert!(checked >= 60, "only {checked} names were compared");
    bench.close().await;
}

/// Role and name of a node as a snapshot shows them; those that it passes over cannot be asked for.
fn shown(node: &Node, snapshot: &str) -> Option<(String, String)> {
    let name = crate::browser::page::snapshot::squeeze(node.name.as_ref()?.as_str());
    let role = crate::browser::page::snapshot::plain(node.role()).to_ascii_lowercase();
    let line = format!("- {role} {}", json!(name));
    let there = snapshot.lines().any(|shown| shown.trim_start().starts_with(&line));
    (!node.ignored && !name.is_empty() && node.backend_node_id.is_some() && there).then_some((role, name))
}
