//! What the two launching tools ask for, turned into one set of options. Everything asked for is
//! either done or refused by name; nothing is silently ignored.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::lifecycle::unsupported;
use super::refusals;
use super::tool::Call;
use crate::auth_state::AuthState;
use crate::fault::{Code, Fault};
use crate::session::SessionOptions;
use serde_json::{Map, Value};

/// Chromium arguments that would break isolation, capture or the quiet network.
const ARGUMENTS_REFUSED: &[&str] = &[
    "--allow-file-access-from-files",
    "--crash-dumps-dir",
    "--disable-features",
    "--disable-setuid-sandbox",
    "--disable-site-isolation-trials",
    "--disable-web-security",
    "--disk-cache-dir",
    "--enable-logging",
    "--gpu-launcher",
    "--headless",
    "--load-extension",
    "--log-file",
    "--no-sandbox",
    "--no-zygote",
    "--ppapi-plugin-launcher",
    "--profile-directory",
    "--remote-allow-origins",
    "--remote-debugging-address",
    "--remote-debugging-pipe",
    "--remote-debugging-port",
    "--renderer-cmd-prefix",
    "--single-process",
    "--user-data-dir",
    "--utility-cmd-prefix",
];
/// Those that would lead around the operator's blocklist, where there is one.
const ARGUMENTS_REFUSED_BLOCKLIST: &[&str] = &["--host-resolver-rules", "--host-rules"];
/// Browsers that `executablePath` may name, besides the operator's own.
const EXECUTABLES_KNOWN: &[&str] = &[
    "/opt/google/chrome/chrome",
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/chromium-headless-shell",
    "/usr/bin/google-chrome",
    "/usr/bin/google-chrome-stable",
    "/usr/bin/microsoft-edge",
];
/// The longest argument, in bytes.
const ARGUMENT_BYTES_MAX: usize = 4_096;

/// # Errors
/// Every documented refusal of `launch_session`.
pub(super) fn from_launch_session(call: &Call, auth_state: Option<Arc<AuthState>>) -> Result<SessionOptions, Fault> {
    let arguments = &call.arguments;
    let slug = arguments.text("slug").to_owned();
    let channel = arguments.text("channel").to_owned();
    let persistence_mode = match arguments.text("persistence_mode") {
        "persistent" => "persistent",
        "storage-state" => "storage-state",
        _ => "memory",
    };
    if let Some(name) = arguments.optional_text("restore_profile") {
        if persistence_mode != "persistent" {
            let reason = "restore_profile needs persistence_mode persistent";
            return Err(Fault::new(Code::InvalidPersistenceConfig).with("reason", reason));
        }
        return Err(Fault::new(Code::AuthStateNotFound).with("name", name).with("kind", "profile"));
    }
    for option in ["stealth", "fingerprint", "humanize"] {
        if arguments.flag(option) == Some(true) {
            return Err(unsupported(option));
        }
    }
    let incognito = arguments.flag("incognito").unwrap_or(false);
    let mut options = SessionOptions {
        profile_directory: persistent_profile(call, &slug, incognito)?,
        slug,
        channel,
        incognito,
        headless: arguments.flag("headless").unwrap_or(true),
        disable_evaluate: arguments.flag("disable_evaluate").unwrap_or(false),
        vault_enabled: arguments.flag("vault_enabled").unwrap_or(true),
        arguments: Vec::new(),
        executable: None,
        window: None,
        persistence_mode,
        auth_state,
    };
    options.executable = channel_executable(&options.channel)?;
    launch_options(call, &mut options)?;
    context_options(call, &mut options)?;
    Ok(options)
}

fn persistent_profile(call: &Call, slug: &str, incognito: bool) -> Result<Option<PathBuf>, Fault> {
    match call.arguments.optional_text("persistence_mode") {
        Some("persistent") if incognito => {
            let reason = "incognito keeps no profile, so it cannot be persistent";
            Err(Fault::new(Code::InvalidPersistenceConfig).with("reason", reason))
        }
        Some("persistent") => Ok(Some(call.gateway.config.data_dir.join("profiles").join(slug))),
        _ => Ok(None),
    }
}

/// Where the branded channels live; Chromium itself is found by the browser layer.
fn channel_executable(channel: &str) -> Result<Option<PathBuf>, Fault> {
    let candidates: &[&str] = match channel {
        "chrome" => &["/usr/bin/google-chrome", "/usr/bin/google-chrome-stable", "/opt/google/chrome/chrome"],
        "edge" => &["/usr/bin/microsoft-edge", "/usr/bin/microsoft-edge-stable"],
        _ => return Ok(None),
    };
    let found = candidates.iter().map(Path::new).find(|path| path.exists());
    found.map(|path| Some(path.to_owned())).ok_or_else(|| {
        Fault::new(Code::BrowserNotInstalled)
            .with("channel", channel)
            .with("remedy", "install it, or ask for channel chromium")
    })
}

fn launch_options(call: &Call, options: &mut SessionOptions) -> Result<(), Fault> {
    let Some(given) = call.arguments.value("launch_options").and_then(Value::as_object) else { return Ok(()) };
    for (key, value) in given {
        match (key.as_str(), value) {
            ("args", Value::Array(list)) => {
                let texts = list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                options.arguments = checked(call, texts)?;
            }
            ("executablePath", Value::String(path)) => options.executable = Some(known_executable(call, path)?),
            ("headless" | "channel", _) => {}
            ("env" | "downloadsPath" | "recordVideo" | "chromiumSandbox", _) => return Err(refuse(call, key)),
            (key, _) => return Err(unsupported(format!("launch_options.{key}"))),
        }
    }
    Ok(())
}

/// A client chooses among installed browsers; it does not get to start any program of the host.
fn known_executable(call: &Call, path: &str) -> Result<PathBuf, Fault> {
    let path = PathBuf::from(path);
    let operators = call.gateway.config.chromium.as_ref() == Some(&path);
    if operators || EXECUTABLES_KNOWN.iter().any(|known| Path::new(known) == path) {
        return Ok(path);
    }
    Err(refuse(call, "executablePath"))
}

fn context_options(call: &Call, options: &mut SessionOptions) -> Result<(), Fault> {
    let Some(given) = call.arguments.value("context_options").and_then(Value::as_object) else { return Ok(()) };
    for (key, value) in given {
        match (key.as_str(), value) {
            // Read before the launch, by `auth`.
            ("storageState", _) => {}
            ("viewport", Value::Object(viewport)) => options.window = Some(size(viewport)?),
            ("locale", Value::String(locale)) => options.arguments.extend(locale_arguments(locale)),
            (key, _) => return Err(unsupported(format!("context_options.{key}"))),
        }
    }
    Ok(())
}

fn size(viewport: &Map<String, Value>) -> Result<(u32, u32), Fault> {
    let side = |name: &str| viewport.get(name).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    match (side("width"), side("height")) {
        (Some(width @ 1..=SIDE_PIXELS_MAX), Some(height @ 1..=SIDE_PIXELS_MAX)) => Ok((width, height)),
        _ => Err(Fault::invalid_argument("context_options.viewport", "needs width and height from 1 to 16384")),
    }
}

/// The widest or tallest window.
const SIDE_PIXELS_MAX: u32 = 16_384;

/// # Errors
/// Every documented refusal of `browser_create_instance`.
pub(super) fn from_create_instance(call: &Call) -> Result<SessionOptions, Fault> {
    let arguments = &call.arguments;
    refuse_what_chromium_lacks(call)?;
    let mut chromium = checked(call, arguments.texts("camoufox_args"))?;
    let mut when = |name: &str, wanted: bool, argument: &str| {
        if arguments.flag(name) == Some(wanted) {
            chromium.push(argument.to_owned());
        }
    };
    when("block_images", true, "--blink-settings=imagesEnabled=false");
    when("block_webrtc", true, "--webrtc-ip-handling-policy=disable_non_proxied_udp");
    when("block_webgl", true, "--disable-3d-apis");
    when("enable_cache", false, "--disk-cache-size=1");
    if let Some(locale) = arguments.optional_text("locale") {
        chromium.extend(locale_arguments(locale));
    }
    chromium.extend(proxy_arguments(arguments.value("proxy").and_then(Value::as_object))?);
    let profile_directory = arguments.optional_text("profile_dir").map(|path| profile(call, path)).transpose()?;
    Ok(SessionOptions {
        slug: arguments.text("name").to_owned(),
        channel: "chromium".to_owned(),
        incognito: false,
        headless: arguments.flag("headless").unwrap_or(call.gateway.config.headless),
        disable_evaluate: false,
        vault_enabled: true,
        arguments: chromium,
        executable: None,
        persistence_mode: if profile_directory.is_some() { "persistent" } else { "memory" },
        profile_directory,
        window: window(arguments.value("window"))?,
        auth_state: None,
    })
}

fn refuse_what_chromium_lacks(call: &Call) -> Result<(), Fault> {
    let arguments = &call.arguments;
    if arguments.optional_text("headless").is_some() {
        return Err(unsupported("headless virtual"));
    }
    if arguments.value("humanize").is_some_and(|value| value.as_bool() != Some(false)) {
        return Err(unsupported("humanize"));
    }
    if arguments.flag("geoip") == Some(true) {
        return Err(unsupported("geoip"));
    }
    let filled = |name: &str| match arguments.value(name) {
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(map)) => !map.is_empty(),
        Some(_) => true,
        None => false,
    };
    match ["camoufox_os", "firefox_user_prefs", "ff_version"].into_iter().find(|name| filled(name)) {
        Some(name) => Err(unsupported(name)),
        None => Ok(()),
    }
}

fn locale_arguments(locale: &str) -> [String; 2] {
    [format!("--lang={locale}"), format!("--accept-lang={locale}")]
}

fn proxy_arguments(proxy: Option<&Map<String, Value>>) -> Result<Vec<String>, Fault> {
    let Some(proxy) = proxy else { return Ok(Vec::new()) };
    if proxy.contains_key("username") || proxy.contains_key("password") {
        return Err(unsupported("proxy credentials"));
    }
    let argument = |key: &str, flag: &str| proxy.get(key).and_then(Value::as_str).map(|text| format!("{flag}={text}"));
    Ok(argument("server", "--proxy-server").into_iter().chain(argument("bypass", "--proxy-bypass-list")).collect())
}

fn window(value: Option<&Value>) -> Result<Option<(u32, u32)>, Fault> {
    let Some(list) = value.and_then(Value::as_array) else { return Ok(None) };
    let side =
        |at: usize| list.get(at).and_then(Value::as_f64).filter(|n| *n <= f64::from(SIDE_PIXELS_MAX)).map(|n| n as u32);
    match (side(0), side(1)) {
        (Some(width), Some(height)) => Ok(Some((width, height))),
        _ => Err(Fault::invalid_argument("window", "sides are from 1 to 16384")),
    }
}

/// A profile lives below the data directory's `profiles`, whoever names it.
fn profile(call: &Call, path: &str) -> Result<PathBuf, Fault> {
    let root = call.gateway.config.data_dir.join("profiles");
    let relative = Path::new(path).strip_prefix(&root).unwrap_or(Path::new(path));
    let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if plain && relative.components().next().is_some() {
        return Ok(root.join(relative));
    }
    Err(refusals::path(call, path))
}

fn checked(call: &Call, arguments: Vec<String>) -> Result<Vec<String>, Fault> {
    let has_blocklist = !call.gateway.config.blocked_origins.is_empty();
    for argument in &arguments {
        let name = argument.split('=').next().unwrap_or_default().to_ascii_lowercase();
        let refused = !argument.starts_with("--")
            || argument.len() > ARGUMENT_BYTES_MAX
            || argument.contains('\0')
            || ARGUMENTS_REFUSED.contains(&name.as_str())
            || (has_blocklist && ARGUMENTS_REFUSED_BLOCKLIST.contains(&name.as_str()));
        if refused {
            return Err(refuse(call, &name));
        }
    }
    Ok(arguments)
}

fn refuse(call: &Call, argument: &str) -> Fault {
    refusals::record(call, "launch_argument", argument, None);
    Fault::new(Code::UnsafeLaunchArg).with("arg", argument)
}
