//! Verifying says yes or no with what was seen, as soon as it holds and not before time is up.

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server};

const BODY: &str = "<h1>Basket</h1><ul id=list><li>One <b>apple</b></li><li>Two pears</li><li hidden>Three</li></ul>
    <button disabled>Pay</button><label>Agree <input type=checkbox id=agree checked></label>
    <label>Name <input id=name value='Ada'></label><label>Pin <input id=pin type=password value='1234'></label>
    <select id=size><option value=s>Small<option value=l selected>Large</select><p hidden>Twin</p><p>Twin</p>
    <div id=note contenteditable>Some note</div>";

async fn verify(server: &Server, id: &str, arguments: Value) -> Value {
    let mut arguments = arguments;
    arguments["session_id"] = id.into();
    if arguments["timeout"].is_null() {
        arguments["timeout"] = 600.into();
    }
    server.ok("verify", arguments).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_says_yes_and_no() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let show = format!("document.body.innerHTML = {}; 1", json!(BODY));
    server.ok("evaluate", json!({"session_id": id, "expression": show})).await;
    let yes = [
        json!({"kind": "element", "selector": "h1"}),
        json!({"kind": "element", "selector": "text=Twin"}),
        json!({"kind": "element", "selector": "#list li >> nth=2", "state": "hidden"}),
        json!({"kind": "element", "selector": "#none", "state": "hidden"}),
        json!({"kind": "element", "selector": "role=button", "state": "disabled"}),
        json!({"kind": "element", "selector": "#name", "state": "enabled"}),
        json!({"kind": "element", "selector": "label=Agree", "state": "checked"}),
        json!({"kind": "text", "text": "one apple"}),
        json!({"kind": "text", "text": "/^Two \\w+$/", "selector": "#list"}),
        json!({"kind": "list", "selector": "#list", "items": ["One apple", "Two"]}),
        json!({"kind": "list", "selector": "#list li", "items": ["apple", "pears"]}),
        json!({"kind": "value", "selector": "#name", "value": "Ada"}),
        json!({"kind": "value", "selector": "#agree", "value": "true"}),
        json!({"kind": "value", "selector": "#size", "value": "l"}),
        json!({"kind": "value", "selector": "#size", "value": "Large"}),
        json!({"kind": "value", "selector": "#pin", "value": "1234"}),
        json!({"kind": "value", "selector": "#note", "value": "Some note"}),
    ];
    for arguments in yes {
        let verdict = verify(&server, &id, arguments.clone()).await;
        assert_eq!(verdict["passed"], true, "{arguments}: {verdict}");
    }
    let no = [
        (json!({"kind": "element", "selector": "#none"}), json!({"count": 0, "visible": 0})),
        (json!({"kind": "element", "selector": "h1", "state": "hidden"}), json!({"count": 1, "visible": 1})),
        (json!({"kind": "element", "selector": "#none", "state": "enabled"}), json!({"count": 0})),
        (json!({"kind": "text", "text": "Three"}), json!({"visible": false})),
        (
            json!({"kind": "list", "selector": "#list", "items": ["Two", "One"]}),
            json!({"texts": ["One apple", "Two pears"]}),
        ),
        (json!({"kind": "value", "selector": "#name", "value": "ada"}), json!({"count": 1, "value": "Ada"})),
        (json!({"kind": "value", "selector": "#pin", "value": "0000"}), json!({"count": 1, "value": "[hidden]"})),
    ];
    for (arguments, actual) in no {
        let verdict = verify(&server, &id, arguments.clone()).await;
        assert_eq!((&verdict["passed"], &verdict["actual"]), (&json!(false), &actual), "{arguments}");
    }
    for (arguments, field) in [
        (json!({"kind": "element"}), "selector"),
        (json!({"kind": "text"}), "text"),
        (json!({"kind": "text", "text": "/(/"}), "text"),
        (json!({"kind": "list", "selector": "#list"}), "items"),
        (json!({"kind": "value", "selector": "#name"}), "value"),
        (json!({"kind": "colour"}), "kind"),
    ] {
        let mut arguments = arguments;
        arguments["session_id"] = id.as_str().into();
        let fault = server.fault("verify", arguments, "INVALID_ARGUMENTS").await;
        assert_eq!(fault["details"]["problems"][0]["field"], field, "{fault}");
    }
    let two = json!({"session_id": id, "kind": "value", "selector": "input", "value": "x"});
    server.fault("verify", two, "LOCATOR_AMBIGUOUS").await;
    let wrong = json!({"session_id": id, "kind": "element", "selector": "##"});
    server.fault("verify", wrong, "INVALID_SELECTOR").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_patient_and_its_value_stays_off_the_record() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let later = "document.body.innerHTML = '<input id=a value=x>';
        fetch('/hold').then(() => setTimeout(() => { a.value = 'canary-8841' }, 900)); 1";
    server.ok("evaluate", json!({"session_id": id, "expression": later})).await;
    let patient =
        json!({"session_id": id, "kind": "value", "selector": "#a", "value": "canary-8841", "timeout": 20_000});
    let waiting = server.begin("verify", patient).await;
    site.arrived("/hold").await;
    site.release();
    // Nothing tells observers of the page that a value has changed: it is looked at again all the same.
    assert_eq!(waiting.reply().await.data()["passed"], true);
    let other = json!({"kind": "value", "selector": "#a", "value": "canary-8842", "timeout": 300});
    assert_eq!(verify(&server, &id, other).await["passed"], false);
    let data = server.data_dir().clone();
    server.stop().await;
    assert_eq!(data.files_with("canary-8842"), Vec::<std::path::PathBuf>::new());
}
