//! The closed list of faults. Read this first; README table, schemas and metrics labels come from it.
//!
//! Laws: codes are append-only; `message` says what went wrong and `next_step` what to do about it,
//! both fixed, both short, both without anything from a page or this machine. The retry class refines
//! the envelope's `retry`, which the outcome decides. Rows hold, in this order: variant, code, error
//! type, retry class, allowed detail keys, message, next step.

macro_rules! faults {
    ($($code:ident $name:literal $error_type:ident $retry:ident [$($detail:literal)*] $message:literal $next:literal;)*) => {
        /// Every fault there is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = $message] $code,)*
        }

        /// The list as data, in order of declaration: row `i` is that of the `i`-th code.
        pub static FAULTS: &[FaultFacts] = &[$(
            FaultFacts {
                code: Code::$code,
                name: $name,
                error_type: ErrorType::$error_type,
                retry: RetryClass::$retry,
                details: &[$($detail),*],
                message: $message,
                next_step: $next,
            },
        )*];
    };
}

macro_rules! words {
    ($(#[doc = $doc:literal])+ $name:ident { $($variant:ident $word:literal,)* }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = $word] $variant,)*
        }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant),*];

            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }
    };
}

/// Everything known about one fault, as data.
#[derive(Debug)]
pub struct FaultFacts {
    pub code: Code,
    pub name: &'static str,
    pub error_type: ErrorType,
    pub retry: RetryClass,
    /// Keys that `details` may have.
    pub details: &'static [&'static str],
    pub message: &'static str,
    pub next_step: &'static str,
}

words! {
    /// The envelope's coarser vocabulary.
    ErrorType {
        InstanceNotFound "instance_not_found",
        InstanceAlreadyExists "instance_already_exists",
        InstanceLimitExceeded "instance_limit_exceeded",
        InstanceCrashed "instance_crashed",
        ProfileDirInUse "profile_dir_in_use",
        BinaryNotFound "binary_not_found",
        ElementNotFound "element_not_found",
        StaleRef "stale_ref",
        NavigationFailed "navigation_failed",
        NavigationTimeout "navigation_timeout",
        WaitTimeout "wait_timeout",
        DialogNotPresent "dialog_not_present",
        EvaluationFailed "evaluation_failed",
        VerificationFailed "verification_failed",
        InvalidParams "invalid_params",
        ModalStateBlocked "modal_state_blocked",
        InternalError "internal_error",
        OperationTimeout "operation_timeout",
        ResultTooLarge "result_too_large",
        UnsupportedCapability "unsupported_capability",
        PageNotFound "page_not_found",
        FrameNotFound "frame_not_found",
        ObservationTimeout "observation_timeout",
        DownloadNotFound "download_not_found",
        DownloadFailed "download_failed",
    }
}

words! {
    /// What would make the same call succeed.
    RetryClass {
        Never "never",
        Backoff "backoff",
        AfterCorrection "after_correction",
        AfterOperator "after_operator",
        InspectState "inspect_state",
        ReadOnly "read_only",
    }
}

impl Code {
    #[must_use]
    pub fn facts(self) -> &'static FaultFacts {
        &FAULTS[self as usize]
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.facts().name
    }

    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        FAULTS.iter().find(|facts| facts.name == name).map(|facts| facts.code)
    }
}

/// The list as a table for the README.
#[must_use]
pub fn faults_markdown() -> String {
    let mut out = String::from(
        "| code | error_type | retry | details | what happened | what to do |\n|---|---|---|---|---|---|\n",
    );
    for row in FAULTS {
        let details = row.details.join(", ");
        let cells =
            [row.name, row.error_type.as_str(), row.retry.as_str(), details.as_str(), row.message, row.next_step];
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    out
}

faults! {
    // ---- arguments ---------------------------------------------------------------------------------
    InvalidArguments "INVALID_ARGUMENTS" InvalidParams AfterCorrection ["problems"]
        "The arguments do not fit this tool."
        "Correct each argument that details.problems names; the accepted names and bounds stand there and in the tool's input schema.";
    UnknownHandle "UNKNOWN_HANDLE" InvalidParams AfterCorrection []
        "There is no kept artifact of that handle."
        "Use a handle exactly as an earlier reply gave it, or call the tool that made it again to have the bytes kept anew.";
    InvalidCursor "INVALID_CURSOR" InvalidParams AfterCorrection []
        "The cursor does not belong to this list and filter."
        "Repeat the call with the same filter that the cursor came with, or leave out `after` to begin at the start.";
    ToolNotAvailable "TOOL_NOT_AVAILABLE" InvalidParams Never ["tool" "requires"]
        "The tool is switched off on this server."
        "Go on with the tools that tools/list shows; an operator can switch on the pack that details.requires names.";

    // ---- sessions ----------------------------------------------------------------------------------
    SessionNotFound "SESSION_NOT_FOUND" InstanceNotFound AfterCorrection ["session_id"]
        "There is no session of that id or name: none that is live and, where evidence is read, none on record."
        "Call list_sessions for the sessions that are live, or launch_session for a new one; evidence of closed sessions is read by their session_id.";
    SessionAlreadyExists "SESSION_ALREADY_EXISTS" InstanceAlreadyExists AfterCorrection ["session_id"]
        "That session name is taken by a session that is live, launching or still closing."
        "Choose another name, go on with the existing session, or close_session it and wait until list_sessions no longer shows it.";
    SessionLimitReached "SESSION_LIMIT_REACHED" InstanceLimitExceeded Backoff ["limit" "live"]
        "The server already runs as many sessions as it may."
        "Close a session that is no longer needed with close_session, then launch again; an operator can raise max_instances.";
    SessionDead "SESSION_DEAD" InstanceCrashed InspectState ["session_id"]
        "The browser of this session is gone and its cleanup is under way."
        "Start another with launch_session; list_console_messages and list_network_requests still read what this one recorded.";
    SessionNotReady "SESSION_NOT_READY" InstanceNotFound Backoff ["session_id" "state"]
        "The session is not ready for calls."
        "Read details.state: while it is launching, repeat the call in a moment; when it is failed, call launch_session again.";
    SessionClosing "SESSION_CLOSING" InstanceNotFound AfterCorrection ["session_id"]
        "The session is being closed and takes no more calls."
        "Use another session from list_sessions or start one with launch_session.";
    SessionClosed "SESSION_CLOSED" InstanceNotFound AfterCorrection ["session_id"]
        "The session was closed earlier."
        "Its history can still be read with list_events and export_events; to browse, start another with launch_session.";
    SessionAccessDenied "SESSION_ACCESS_DENIED" InstanceNotFound Never ["session_id"]
        "There is no session of that id or name: none that is live and, where evidence is read, none on record."
        "Call list_sessions for the sessions that are live, or launch_session for a new one; evidence of closed sessions is read by their session_id.";
    SessionBusy "SESSION_BUSY" OperationTimeout Backoff ["depth"]
        "The session's queue of waiting calls is full."
        "Wait for earlier calls to end before sending more; calls to one session run one after another.";
    ProfileDirInUse "PROFILE_DIR_IN_USE" ProfileDirInUse AfterCorrection []
        "The profile directory is reserved by another session."
        "Close that session and wait until list_sessions no longer shows it, or name another profile directory.";

    // ---- launching ---------------------------------------------------------------------------------
    BrowserNotInstalled "BROWSER_NOT_INSTALLED" BinaryNotFound AfterOperator ["channel" "remedy"]
        "No usable Chromium was found on this machine."
        "Ask the operator to do what details.remedy says: install Chromium or point the chromium option at one.";
    BrowserLaunchFailed "BROWSER_LAUNCH_FAILED" InternalError Backoff ["reason"]
        "Chromium was started but did not come up."
        "Call launch_session again after a moment; if it keeps failing, the operator finds the cause with the doctor command.";
    SandboxUnavailable "SANDBOX_UNAVAILABLE" InternalError AfterOperator ["reason"]
        "Chromium's sandbox cannot be had here, and the server requires it."
        "Ask the operator to run the server as an ordinary user, or to waive the sandbox with --no-chromium-sandbox.";
    BrowserCrashed "BROWSER_CRASHED" InstanceCrashed InspectState ["session_id"]
        "The browser died while this call was running."
        "The action may have happened: look at list_events for this session, then start another with launch_session.";
    PageCrashed "PAGE_CRASHED" PageNotFound InspectState ["tab_id"]
        "The page's renderer died."
        "Call reload on this tab or open another with new_tab, then check what the action left behind before repeating it.";
    UnknownChannel "UNKNOWN_CHANNEL" InvalidParams AfterCorrection ["channel" "supported"]
        "The browser channel is not one this server knows."
        "Pass one of details.supported as `channel`, or leave `channel` out.";
    InvalidSlug "INVALID_SLUG" InvalidParams AfterCorrection ["pattern"]
        "The session slug breaks its grammar."
        "Pass a `slug` that matches details.pattern, such as shop-1.";
    UnsafeLaunchArg "UNSAFE_LAUNCH_ARG" InvalidParams AfterCorrection ["arg"]
        "A launch argument is refused because it would weaken the browser or the gateway."
        "Leave out the argument that details.arg names and call launch_session again.";
    InvalidPersistenceConfig "INVALID_PERSISTENCE_CONFIG" InvalidParams AfterCorrection ["reason"]
        "The persistence options contradict each other."
        "Read details.reason, keep one way of persistence, and call launch_session again.";

    // ---- saved logins ------------------------------------------------------------------------------
    AuthStateNotFound "AUTH_STATE_NOT_FOUND" InvalidParams AfterCorrection ["name" "kind"]
        "There is no saved login of that name."
        "Call list_saved_auths for the names there are, or save one with save_storage_state or save_full_profile.";
    AuthStateDamaged "AUTH_STATE_DAMAGED" InternalError Never ["name"]
        "The saved login does not pass its integrity check and was not used."
        "Log in anew in a session and save it under another name with save_storage_state or save_full_profile.";
    PersistenceDisabled "PERSISTENCE_DISABLED" UnsupportedCapability Never []
        "Saving logins is switched off on this server."
        "Go on without saved logins, or ask the operator to switch saving on.";

    // ---- pages and navigation ----------------------------------------------------------------------
    TabNotFound "TAB_NOT_FOUND" PageNotFound AfterCorrection ["tab_id"]
        "There is no such tab open in this session."
        "Call list_tabs for the open tabs, or open one with new_tab.";
    FrameNotFound "FRAME_NOT_FOUND" FrameNotFound AfterCorrection ["frame_id"]
        "There is no such frame in this page."
        "Take a new snapshot to see the frames there are, or leave the frame out to address the main one.";
    PageClosed "PAGE_CLOSED" PageNotFound InspectState ["tab_id"]
        "The tab was closed while this call was running."
        "Call list_tabs to see what is open; the action may have closed the tab itself.";
    NavigationFailed "NAVIGATION_FAILED" NavigationFailed Backoff ["reason" "url"]
        "The browser could not load the address."
        "Read details.reason, check the address, and look at list_network_requests with `failed` true before trying again.";
    NavigationTimeout "NAVIGATION_TIMEOUT" NavigationTimeout Backoff ["timeout_ms" "url"]
        "The page did not reach the awaited load state in time."
        "Look at the page with snapshot: it may be usable. Else pass a larger `timeout` or wait_until domcontentloaded.";
    UrlBlocked "URL_BLOCKED" NavigationFailed Never ["rule"]
        "The operator's rules refuse this address."
        "Use another address; only the operator can change the rule that details.rule names.";
    SchemeNotAllowed "SCHEME_NOT_ALLOWED" NavigationFailed Never ["scheme"]
        "Addresses of this scheme are refused."
        "Pass an absolute http or https address.";

    // ---- elements ----------------------------------------------------------------------------------
    ElementNotFound "ELEMENT_NOT_FOUND" ElementNotFound AfterCorrection ["selector"]
        "Nothing on the page matches the selector."
        "Take a snapshot and use a reference from it as `selector`; if the element is still to come, call wait_for_selector first.";
    LocatorAmbiguous "LOCATOR_AMBIGUOUS" ElementNotFound AfterCorrection ["selector" "count" "candidates"]
        "The selector matches several elements and the action needs one."
        "Use the selector of the one that is meant from details.candidates, or make the selector narrower, for example with >> nth=0.";
    ElementNotActionable "ELEMENT_NOT_ACTIONABLE" ElementNotFound Backoff ["selector" "reason"]
        "The element is there but cannot be acted on."
        "Read details.reason: close what covers it, scroll, or wait with wait_for_selector until it is visible and enabled.";
    InvalidSelector "INVALID_SELECTOR" InvalidParams AfterCorrection ["selector" "reason"]
        "The selector cannot be parsed."
        "Correct what details.reason names, or take a snapshot and use a reference such as e12.";
    StaleRef "STALE_REF" StaleRef AfterCorrection ["ref" "snapshot_id"]
        "The reference belongs to a snapshot that no longer holds."
        "Take a new snapshot of the tab and use the reference that it gives.";
    StaleSnapshotCursor "STALE_SNAPSHOT_CURSOR" StaleRef AfterCorrection []
        "The snapshot that this cursor continues no longer holds."
        "Call snapshot without a cursor and page through the new one.";

    // ---- waiting and deadlines ---------------------------------------------------------------------
    WaitTimeout "WAIT_TIMEOUT" WaitTimeout Backoff ["timeout_ms" "what"]
        "What the call waited for did not come in time."
        "Take a snapshot to see where the page stands, then wait for something it can reach or pass a larger `timeout`.";
    ObservationTimeout "OBSERVATION_TIMEOUT" ObservationTimeout InspectState ["timeout_ms" "kind"]
        "The action was done, but what it should have brought about did not come in time."
        "Do not repeat the action blindly: take a snapshot and read list_network_requests to see what it did.";
    OperationTimeout "OPERATION_TIMEOUT" OperationTimeout InspectState ["timeout_ms" "phase"]
        "The call used up its whole time, waiting in the queue included."
        "If details.phase is queued, nothing was done: repeat it. If it is navigating, a server keeps the next page waiting: navigate elsewhere. Else take a snapshot to see what happened first.";
    OperationCancelled "OPERATION_CANCELLED" OperationTimeout InspectState ["phase"]
        "The client took the call back."
        "If details.phase is queued, nothing was done; else look at list_events or take a snapshot before repeating it.";
    ModalStateBlocked "MODAL_STATE_BLOCKED" ModalStateBlocked AfterCorrection ["dialog_type" "clear_with"]
        "A dialog or file chooser stands in the way, or there is none to answer."
        "Call the tool that details.clear_with names, then repeat this call; without it, take a snapshot to see the page.";

    // ---- scripts and checks ------------------------------------------------------------------------
    EvaluateDisabled "EVALUATE_DISABLED" InvalidParams Never ["scope"]
        "Running scripts is switched off here."
        "Read the page with snapshot or get_content and act with click, fill and press_key instead.";
    ScriptError "SCRIPT_ERROR" EvaluationFailed AfterCorrection ["text"]
        "The script threw an error or could not be parsed."
        "Read details.text, correct the script, and call evaluate again; what it did before the error stays done.";
    VerificationFailed "VERIFICATION_FAILED" VerificationFailed ReadOnly ["expected" "actual"]
        "The page is not in the expected state."
        "Compare details.expected with details.actual, and take a snapshot to see the whole page.";
    UnsupportedCapability "UNSUPPORTED_CAPABILITY" UnsupportedCapability Never ["what"]
        "This browser or server cannot do what was asked."
        "Leave out what details.what names; server_status says what this server can do.";

    // ---- files -------------------------------------------------------------------------------------
    PathNotAllowed "PATH_NOT_ALLOWED" InvalidParams AfterCorrection ["path"]
        "The path or file name lies outside its permitted area."
        "Pass a plain relative name without .. or invisible characters in it, or leave the path out to have the file kept as an artifact.";
    UploadFailed "UPLOAD_FAILED" InternalError AfterCorrection ["reason"]
        "The file input did not take the files."
        "Read details.reason and check with snapshot that the selector names a file input that accepts them.";
    DownloadNotFound "DOWNLOAD_NOT_FOUND" DownloadNotFound AfterCorrection ["download_id"]
        "There is no such download."
        "Call list_downloads for the downloads of this session.";
    DownloadFailed "DOWNLOAD_FAILED" DownloadFailed Backoff ["reason"]
        "The download ended without a file."
        "Read details.reason, look at list_network_requests for the request behind it, and start the download again.";

    // ---- bounds ------------------------------------------------------------------------------------
    ResultTooLarge "RESULT_TOO_LARGE" ResultTooLarge AfterCorrection ["size" "limit" "handle"]
        "The result is larger than one reply may be; the call itself was done."
        "Read it in parts with read_artifact and the handle in details.handle, or ask for less; do not repeat an action for its result.";
    LimitExceeded "LIMIT_EXCEEDED" InvalidParams AfterCorrection ["limit" "name"]
        "The request goes beyond a stated bound."
        "Stay within details.limit for what details.name names; server_status lists the bounds.";
    RateLimited "RATE_LIMITED" InstanceLimitExceeded Backoff ["retry_after_ms"]
        "Too many requests came in too short a time."
        "Wait for details.retry_after_ms milliseconds and repeat the call.";

    // ---- the server itself -------------------------------------------------------------------------
    ExportFailed "EXPORT_FAILED" InternalError Backoff ["reason"]
        "The export could not be written, and nothing partial was left."
        "Read details.reason and call export_events again, with a narrower selection if it is a matter of size.";
    LogUnavailable "LOG_UNAVAILABLE" InternalError AfterOperator ["reason"]
        "The event log cannot record, so the server does no browser work."
        "Ask the operator to mend the data directory and restart the server; server_status shows the log's health.";
    DiskLow "DISK_LOW" InternalError AfterOperator ["free_bytes"]
        "The disk is too full for new work."
        "Ask the operator to free space in the data directory; closing sessions with close_session and reading still work.";
    ServerShuttingDown "SERVER_SHUTTING_DOWN" InvalidParams Backoff []
        "The server is stopping and takes no more calls."
        "Connect again once it is back, then call list_sessions: sessions do not outlive the server, their history does.";

    // ---- people and secrets ------------------------------------------------------------------------
    AttentionRequiresHttp "ATTENTION_REQUIRES_HTTP" UnsupportedCapability Never []
        "No person can be asked while the server speaks over stdio alone."
        "Go on without a person, or ask the operator to start the server with --http.";
    AttentionNotOpen "ATTENTION_NOT_OPEN" InvalidParams Never ["request_id" "status"]
        "That request for attention is already settled."
        "Read its outcome with get_attention_result, or open another with request_attention.";
    InputNotPermitted "INPUT_NOT_PERMITTED" InvalidParams AfterOperator []
        "Operator input needs a takeover, and none is open."
        "Open a takeover on the operator page first, or have one asked for with request_attention.";
    VaultNotConfigured "VAULT_NOT_CONFIGURED" UnsupportedCapability Never []
        "This server has no vault."
        "Ask a person to log in through request_attention, or use a saved login from list_saved_auths.";
    VaultLocked "VAULT_LOCKED" InternalError AfterOperator ["backend"]
        "The vault is locked."
        "Ask the operator to unlock it, for example through request_attention, then repeat the call.";
    VaultBackendError "VAULT_BACKEND_ERROR" InternalError Backoff ["backend" "kind"]
        "The vault's backend did not answer as it should."
        "Repeat the call after a moment; if it keeps failing, ask the operator to look at the backend that details.backend names.";
    InternalError "INTERNAL_ERROR" InternalError InspectState []
        "The server made a mistake of its own."
        "Look at the page with snapshot before repeating an action, and quote operation.id when reporting it.";

    // ---- not in the contract's first list ----------------------------------------------------------
    HistoryDamaged "HISTORY_DAMAGED" InternalError AfterOperator ["first_seq" "last_seq"]
        "Part of the history asked for is damaged on disk."
        "Read what lies outside details.first_seq to details.last_seq, and ask the operator to restore the data directory from a copy.";
}
