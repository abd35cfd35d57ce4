//! Dragging by pointer and with data, and the mouse by coordinates.

use serde_json::json;

use super::Bench;

#[tokio::test(flavor = "multi_thread")]
async fn elements_are_dragged_by_pointer_and_with_data() {
    let bench = Bench::at("/acting-drag.html").await;
    let drag = |source: &str, target: &str| json!({"source_selector": source, "target_selector": target});
    let dragged = bench.ok("drag_and_drop", drag("#slider", "#slot")).await;
    assert_eq!((&dragged["ok"], &dragged["dropped"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(bench.log().await, ["down", "up inside=true"]);

    assert!(bench.ok("drag_and_drop", drag("#card", "#shelf")).await.get("dropped").is_none());
    let log = bench.log().await;
    assert_eq!(log.first().map(String::as_str), Some("start card trusted=true"));
    assert!(log.contains(&"enter shelf".to_owned()) && log.contains(&"drop shelf data of card".to_owned()), "{log:?}");
    assert_eq!(log.last().map(String::as_str), Some("end card copy"));
    bench.ok("drag_and_drop", drag("text=A link", "role=generic >> #shelf")).await;
    assert!(bench.log().await.contains(&"drop shelf data of link".to_owned()), "links begin late");
    bench.ok("drag_and_drop", drag("#card", "#far")).await;
    assert!(bench.log().await.contains(&"drop far data of card".to_owned()), "the goal was scrolled into view");
    bench.ok("drag_and_drop", drag("#card", "#late")).await;
    assert!(bench.log().await.contains(&"drop late data of card".to_owned()), "the goal shows itself while dragging");
    assert_eq!(bench.ok("drag_and_drop", drag("#card", "#refuser")).await["dropped"], false);
    let log = bench.log().await;
    assert!(!log.contains(&"drop refuser".to_owned()), "nothing drops where the page takes nothing: {log:?}");
    assert_eq!(log.last().map(String::as_str), Some("end card none"));

    let missing = bench.fault("drag_and_drop", drag("#card", "#nowhere"), "ELEMENT_NOT_FOUND").await;
    assert_eq!(missing["details"]["selector"], "#nowhere");
    let missing = bench.fault("drag_and_drop", drag("#nothing", "#shelf"), "ELEMENT_NOT_FOUND").await;
    assert_eq!(missing["details"]["selector"], "#nothing");
    assert_eq!(bench.log().await, Vec::<String>::new(), "and nothing was pressed for it");
    bench.value("document.querySelector('#late').style.visibility = 'hidden'").await;
    let hidden = bench.fault("drag_and_drop", drag("#card", "#late"), "ELEMENT_NOT_ACTIONABLE").await;
    assert_eq!(hidden["details"], json!({"selector": "#late", "reason": "hidden"}));
    bench.log().await;
    bench.click("#after").await;
    assert_eq!(bench.log().await, ["after"], "no drag stays open");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mouse_goes_by_coordinates() {
    let bench = Bench::at("/acting-drag.html").await;
    let at = |x: i64, y: i64| json!({"x": x, "y": y});
    let moved = bench.ok("mouse_move", at(530, 30)).await;
    assert_eq!(moved["element"], "<canvas#canvas>");
    assert_eq!(bench.value("moved").await, "10,10 buttons=0");
    let mut click = at(540, 40);
    click["modifiers"] = json!(["Shift"]);
    click["click_count"] = 2.into();
    bench.ok("mouse_click", click).await;
    let first = "canvas down 20,20 detail=1 shift=true button=0";
    let second = "canvas down 20,20 detail=2 shift=true button=0";
    assert_eq!(bench.log().await, [first, "canvas up 20,20", second, "canvas up 20,20"]);
    bench.ok("mouse_drag", json!({"from_x": 530, "from_y": 30, "to_x": 700, "to_y": 100})).await;
    assert_eq!(bench.log().await, ["canvas down 10,10 detail=1 shift=false button=0", "canvas up 180,80"]);
    assert_eq!(bench.value("moved").await, "180,80 buttons=1");
    bench.ok("mouse_drag", json!({"from_x": 60, "from_y": 250, "to_x": 360, "to_y": 250})).await;
    assert!(bench.log().await.contains(&"drop shelf data of card".to_owned()), "data is dragged by points too");

    let wheel = bench.ok("mouse_wheel", json!({"dy": 40, "dx": 5, "x": 600, "y": 80})).await;
    assert_eq!(bench.log().await, ["wheel 5,40"]);
    assert_eq!(wheel["y"].as_f64(), Some(0.0), "the canvas kept it");
    bench.ok("mouse_wheel", json!({"dy": 300})).await;
    crate::support::wait_for("the page scrolls", || async {
        (bench.value("scrollY").await.as_f64() == Some(300.0)).then_some(())
    })
    .await;

    for (tool, arguments) in [
        ("mouse_move", at(5000, 10)),
        ("mouse_click", at(-1, 10)),
        ("mouse_drag", json!({"from_x": 10, "from_y": 10, "to_x": 10, "to_y": 9000})),
        ("mouse_wheel", json!({"dy": 0})),
        ("mouse_wheel", json!({"dy": 10, "x": 5})),
    ] {
        bench.fault(tool, arguments, "INVALID_ARGUMENTS").await;
    }
}
