//! Pictures show what they say they show: each is decoded and looked at, pixel by pixel where it counts.

use base64::Engine;
use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, walk};

/// Red, green, blue and alpha at each of `points`, and the picture's own size.
async fn look(server: &Server, id: &str, artifact: &Value, points: &[(u32, u32)]) -> (Value, Vec<Value>) {
    let png = walk::artifact(server, artifact.as_str().expect("a handle"), 1_000_000).await;
    let picture = base64::engine::general_purpose::STANDARD.encode(png);
    let script = format!(
        "async () => {{
            const blob = await (await fetch('data:image/png;base64,{picture}')).blob();
            const bitmap = await createImageBitmap(blob);
            const pixel = new OffscreenCanvas(1, 1).getContext('2d', {{ willReadFrequently: true }});
            const colors = {points}.map(([x, y]) => {{
                pixel.clearRect(0, 0, 1, 1);
                pixel.drawImage(bitmap, x, y, 1, 1, 0, 0, 1, 1);
                return [...pixel.getImageData(0, 0, 1, 1).data];
            }});
            return {{ size: [bitmap.width, bitmap.height], colors }};
        }}",
        points = json!(points)
    );
    let seen = server.ok("evaluate", json!({"session_id": id, "expression": script})).await;
    let colors = seen["result"]["colors"].as_array().expect("colours").clone();
    (seen["result"]["size"].clone(), colors)
}

/// The colour of the page's band at `y`.
fn band(y: u32) -> Value {
    json!([y / 1000 * 5, 100, 200, 255])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_page_is_whole_up_to_the_bound() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/tall.html?bands=12")).await;
    let heights = [0, 999, 1000, 5500, 8191, 8193, 11_999];
    let points = heights.map(|y| (5, y));
    let whole = server.ok("screenshot", json!({"session_id": id, "full_page": true})).await;
    assert_eq!((&whole["height"], whole.get("truncated")), (&json!(12_000), None), "{whole}");
    let (size, colors) = look(&server, &id, &whole["artifact"], &points).await;
    assert_eq!(size, json!([whole["width"], whole["height"]]));
    assert_eq!(colors, heights.map(band));

    // Past the bound the picture is the beginning, and says of what.
    server.ok("navigate", json!({"session_id": id, "url": site.url("/tall.html?bands=40")})).await;
    let cut = server.ok("screenshot", json!({"session_id": id, "full_page": true})).await;
    assert_eq!((&cut["height"], &cut["truncated"]), (&json!(16_384), &json!(true)), "{cut}");
    assert_eq!((&cut["page_height"], &cut["page_width"]), (&json!(40_000), &cut["width"]));
    let heights = [0, 8191, 8193, 15_500, 16_383];
    let (size, colors) = look(&server, &id, &cut["artifact"], &heights.map(|y| (5, y))).await;
    assert_eq!((size, colors), (json!([cut["width"], 16_384]), heights.map(band).to_vec()));
    // The rest is had by clips of the page.
    let rest = json!({"x": 0, "y": 35_500, "width": 100, "height": 4_500});
    let rest = server.ok("screenshot", json!({"session_id": id, "full_page": true, "clip": rest})).await;
    let (size, colors) = look(&server, &id, &rest["artifact"], &[(5, 0), (5, 600), (5, 4_499)]).await;
    assert_eq!((size, colors), (json!([100, 4_500]), [35_500, 36_100, 39_999].map(band).to_vec()));
    for (clip, name) in [
        (json!({"x": 0, "y": 0, "width": 10, "height": 16_385}), "side"),
        (json!({"x": 0, "y": 0, "width": 16_384, "height": 16_384}), "pixels of a picture"),
    ] {
        let asked = json!({"session_id": id, "full_page": true, "clip": clip});
        let fault = server.fault("screenshot", asked, "LIMIT_EXCEEDED").await;
        assert!(fault["details"]["name"].as_str().is_some_and(|told| told.contains(name)), "{fault}");
        assert!(fault["details"]["limit"].is_u64(), "{fault}");
    }
    let empty = json!({"session_id": id, "clip": {"x": 0, "y": 0, "width": 0, "height": 5}});
    server.fault("screenshot", empty, "UNSUPPORTED_CAPABILITY").await;
    // None of it has moved the page.
    let place = json!({"session_id": id, "expression": "[scrollX, scrollY, innerHeight < 16384]"});
    assert_eq!(server.ok("evaluate", place).await["result"], json!([0, 0, true]));
}

#[tokio::test(flavor = "multi_thread")]
async fn elements_and_clips_are_cut_to_the_pixel() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/tall.html")).await;
    let element = |selector: &str| json!({"session_id": id, "selector": selector});
    let mark = server.ok("screenshot", element("#mark")).await;
    let (size, colors) = look(&server, &id, &mark["artifact"], &[(2, 2), (98, 48)]).await;
    assert_eq!(colors, [json!([1, 2, 3, 255]), json!([1, 2, 3, 255])]);
    assert!((size[0] == 101) && (size[1] == 50 || size[1] == 51), "the box, rounded outward: {size}");
    let inside = server.ok("screenshot", element("iframe >> #inside")).await;
    let (size, colors) = look(&server, &id, &inside["artifact"], &[(0, 0), (59, 39)]).await;
    assert_eq!((size, colors), (json!([60, 40]), vec![json!([9, 8, 7, 255]); 2]), "also in a frame");
    // A clip counts from the corner of what shows, wherever that is.
    server.ok("scroll", json!({"session_id": id, "mode": "to", "x": 0, "y": 1500})).await;
    let clip = json!({"session_id": id, "clip": {"x": 0, "y": 499, "width": 30, "height": 2}});
    let clip = server.ok("screenshot", clip).await;
    let (size, colors) = look(&server, &id, &clip["artifact"], &[(5, 0), (5, 1)]).await;
    assert_eq!((size, colors), (json!([30, 2]), vec![band(1999), band(2000)]));

    server.fault("screenshot", element("#absent"), "ELEMENT_NOT_FOUND").await;
    server.fault("screenshot", element("div"), "LOCATOR_AMBIGUOUS").await;
    let empty = "void (document.body.append(Object.assign(document.createElement('div'), {id: 'empty'})))";
    server.ok("evaluate", json!({"session_id": id, "expression": empty})).await;
    server.fault("screenshot", element("#empty"), "ELEMENT_NOT_ACTIONABLE").await;
    let mut both = element("#mark");
    both["full_page"] = true.into();
    server.fault("screenshot", both, "INVALID_ARGUMENTS").await;
    let mut tab = element("#mark");
    tab["tab_id"] = "t-none".into();
    server.fault("screenshot", tab, "TAB_NOT_FOUND").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_background_is_left_out_on_request_and_back_after() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let corner = |omit: bool| {
        let clip = json!({"x": 600, "y": 600, "width": 10, "height": 10});
        json!({"session_id": id, "omit_background": omit, "clip": clip})
    };
    for (omit, alpha) in [(false, 255), (true, 0), (false, 255)] {
        let shot = server.ok("screenshot", corner(omit)).await;
        let (_, colors) = look(&server, &id, &shot["artifact"], &[(5, 5)]).await;
        assert_eq!(colors[0][3], alpha, "omit {omit}: {colors:?}");
    }
    let whole = json!({"session_id": id, "omit_background": true});
    let whole = server.ok("screenshot", whole).await;
    let (size, colors) = look(&server, &id, &whole["artifact"], &[(600, 600)]).await;
    assert_eq!((&colors[0][3], size), (&json!(0), json!([whole["width"], whole["height"]])));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_printed_to_pdf() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let pdf = server.ok("save_pdf", json!({"session_id": id, "path": "out/plain.pdf"})).await;
    let saved = std::fs::read(pdf["saved_to"].as_str().expect("a path")).expect("the file");
    assert!(saved.starts_with(b"%PDF-") && saved.ends_with(b"%%EOF\n") || saved.ends_with(b"%%EOF"), "a whole PDF");
    assert_eq!(pdf["bytes"], saved.len());
    assert_eq!(walk::artifact(&server, pdf["artifact"].as_str().expect("a handle"), 100_000).await, saved);
    let size = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (_, rest) = text.split_once("/MediaBox [").expect("a page has a size");
        let sides: Vec<f64> = rest
            .split(']')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .filter_map(|side| side.parse().ok())
            .collect();
        (sides[2], sides[3])
    };
    let (width, height) = size(&saved);
    assert!((width - 595.3).abs() < 1.0 && (height - 841.9).abs() < 1.0, "A4 in points: {width} x {height}");
    let wide = json!({"session_id": id, "format": "Letter", "landscape": true});
    let wide = server.ok("save_pdf", wide).await;
    let wide = walk::artifact(&server, wide["artifact"].as_str().expect("a handle"), 100_000).await;
    assert_eq!(size(&wide), (792.0, 612.0));
    server.fault("save_pdf", json!({"session_id": id, "path": "../out.pdf"}), "PATH_NOT_ALLOWED").await;
    server.fault("save_pdf", json!({"session_id": id, "format": "A0"}), "INVALID_ARGUMENTS").await;
    server.fault("save_pdf", json!({"session_id": id, "tab_id": "t-none"}), "TAB_NOT_FOUND").await;
}
