//! Which Chromium is started, and with which flags.
//!
//! Quiet by default: nothing leaves loopback unless a page asks for it. The list was held against
//! traces of name lookups and connections for both builds.

use std::path::{Path, PathBuf};

/// Names looked for on the path, best first.
const HEADLESS: [&str; 1] = ["chromium-headless-shell"];
const WINDOWED: [&str; 4] = ["chromium", "google-chrome", "chromium-browser", "google-chrome-stable"];

/// Flags of every launch.
const ALWAYS: &[&str] = &[
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-service-autorun",
    "--password-store=basic",
    "--use-mock-keychain",
    "--mute-audio",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-component-extensions-with-background-pages",
    "--disable-default-apps",
    "--disable-infobars",
    "--disable-search-engine-choice-screen",
    "--disable-prompt-on-repost",
    "--disable-hang-monitor",
    "--disable-ipc-flooding-protection",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-back-forward-cache",
    "--force-color-profile=srgb",
    "--export-tagged-pdf",
    // Quiet network.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--disable-field-trial-config",
    "--disable-variations-seed-fetch",
    "--safebrowsing-disable-auto-update",
    "--metrics-recording-only",
    "--no-pings",
    // What has no switch of its own is pointed at a port where nobody listens.
    "--gcm-checkin-url=http://127.0.0.1:9/",
    "--gcm-registration-url=http://127.0.0.1:9/",
    "--gaia-url=http://127.0.0.1:9/",
    "--google-apis-url=http://127.0.0.1:9/",
    "--apps-gallery-update-url=http://127.0.0.1:9/",
    "--component-updater=url-source=http://127.0.0.1:9/",
];

/// Features that talk to servers by themselves, or put pages of their own beside the user's.
const FEATURES_OFF: &str = "--disable-features=AcceptCHFrame,AutofillServerCommunication,\
CertificateTransparencyComponentUpdater,DestroyProfileOnBrowserClose,DialMediaRouteProvider,\
GlobalMediaControls,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,InterestFeedContentSuggestions,\
LensOverlay,MediaRouter,NetworkTimeServiceQuerying,OptimizationGuideModelDownloading,OptimizationHints,\
OptimizationHintsFetching,OptimizationTargetPrediction,Prerender2,RenderDocument,SafeBrowsingOnUIThread,\
SegmentationPlatform,Translate,AsyncDns,DnsOverHttpsUpgrade";

/// No Chromium was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFound {
    /// What was looked for.
    pub looked_for: Vec<String>,
}

/// The Chromium to start: the one named, or the best one installed.
///
/// # Errors
/// `NotFound` says what was looked for.
pub fn find_executable(headless: bool, explicit: Option<&Path>) -> Result<PathBuf, NotFound> {
    if let Some(path) = explicit {
        let found = if path.components().count() > 1 { path.is_file().then(|| path.to_owned()) } else { on_path(path) };
        return found.ok_or_else(|| NotFound { looked_for: vec![path.display().to_string()] });
    }
    let preferred: &[&str] = if headless { &HEADLESS } else { &[] };
    let names = preferred.iter().chain(&WINDOWED);
    let missing = || NotFound { looked_for: preferred.iter().chain(&WINDOWED).map(ToString::to_string).collect() };
    names.map(Path::new).find_map(on_path).ok_or_else(missing)
}

fn on_path(name: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|candidate| candidate.is_file())
}

/// What the flags depend on.
pub struct Wishes<'a> {
    pub headless: bool,
    pub sandbox: bool,
    pub window: Option<(u32, u32)>,
    pub profile: &'a Path,
    /// Hosts that are not to be found.
    pub lookup_rules: Option<String>,
    pub extra: &'a [String],
}

/// All arguments of a launch.
#[must_use]
pub fn arguments(wishes: &Wishes<'_>) -> Vec<String> {
    let mut arguments: Vec<String> = ALWAYS.iter().map(ToString::to_string).collect();
    arguments.push(FEATURES_OFF.to_owned());
    arguments.push(format!("--user-data-dir={}", wishes.profile.display()));
    if wishes.headless {
        arguments.extend(["--headless", "--hide-scrollbars", "--disable-gpu"].map(str::to_owned));
    }
    if !wishes.sandbox {
        arguments.push("--no-sandbox".to_owned());
    }
    let (width, height) = wishes.window.unwrap_or((1280, 720));
    arguments.push(format!("--window-size={width},{height}"));
    if !wishes.extra.iter().any(|argument| argument.starts_with("--proxy-")) {
        arguments.push("--no-proxy-server".to_owned());
    }
    merge_features(&mut arguments, wishes.extra);
    // Chromium heeds the last one.
    arguments.extend(wishes.lookup_rules.iter().map(|rules| format!("--host-resolver-rules={rules}")));
    arguments.push("about:blank".to_owned());
    arguments
}

/// Appends `extra`. Chromium heeds only the last list of disabled features, so ours and the caller's
/// become one.
fn merge_features(arguments: &mut Vec<String>, extra: &[String]) {
    const LIST: &str = "--disable-features=";
    for argument in extra {
        let ours = arguments.iter_mut().find(|ours| ours.starts_with(LIST));
        match (argument.strip_prefix(LIST), ours) {
            (Some(features), Some(ours)) => {
                ours.push(',');
                ours.push_str(features);
            }
            _ => arguments.push(argument.clone()),
        }
    }
}
