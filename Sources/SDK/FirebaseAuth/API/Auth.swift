// Auth: the authentication of one app, with its settings and the signed-in user.
//
// Invariant: the stored user, `currentUser` and the app's token source change together and in the same order.

public import FirebaseCore
public import Foundation
import Locking

/// Signs users in and out, and stores the signed-in user, so that a restart of the program keeps the sign-in.
///
/// ```swift
/// let result = try await Auth.auth().signIn(withEmail: "lea@example.org", password: "hunter22")
/// print(result.user.uid)
/// ```
///
/// Completion handlers and listeners are called on the main queue. Safe to use from any thread.
@preconcurrency
open class Auth: NSObject, @unchecked Sendable {
  // SAFETY: the state is behind a lock; everything else is a constant, or a weak reference, which is atomic.
  struct State {
    var backend: AuthBackend
    var user: User?
    var listeners: [ListenerHandle] = []
    /// The user and token of the latest notification.
    var notified = TokenState.signedOut
    /// Whether another product requested a token, so that tokens are refreshed before they expire.
    var refreshesAutomatically = false
    var automaticRefresh: Task<Void, Never>?
  }

  private static let instances = Guarded<[String: Auth]>([:])

  /// The app; nil after it was released.
  public internal(set) weak var app: FirebaseApp?

  let state: Guarded<State>
  let store: any UserStore
  let clock: AuthClock
  let tokenSource: TokenSource
  /// The lock of changes. A change holds it from the storage of a user until all observers are notified.
  let changeLock = NSRecursiveLock()

  init(app: FirebaseApp, apiKey: String, store: any UserStore, clock: AuthClock) {
    self.app = app
    self.store = store
    self.clock = clock
    tokenSource = app.authTokenSource
    let options = app.options
    state = Guarded(
      State(
        backend: AuthBackend(
          apiKey: apiKey, appID: options.googleAppID, bundleID: options.bundleID,
          appCheckTokens: app.appCheckTokens)))
    super.init()
    restoreUser()
  }

  // MARK: Instances

  /// The authentication of the default app.
  ///
  /// Stops the program before `FirebaseApp.configure()`, and if the app's options have no API key.
  open class func auth() -> Auth {
    guard let app = FirebaseApp.app() else {
      usageException(
        "FIRAppNotConfigured",
        "The default FirebaseApp instance must be configured before `Auth.auth()` is used. "
          + "Call `FirebaseApp.configure()` first")
    }
    return auth(app: app)
  }

  /// The authentication of an app.
  ///
  /// Stops the program when the app's options have no API key.
  open class func auth(app: FirebaseApp) -> Auth {
    guard let apiKey = app.options.apiKey, !apiKey.isEmpty else {
      usageException(
        "FIRInvalidAPIKey", "Set `apiKey` in the options of app '\(app.name)'. An emulator accepts any key")
    }
    // The `Auth` of a deleted app is not stored by name, because another app may already have the name.
    if app.isDeleted {
      return Auth(app: app, apiKey: apiKey, store: userStore(for: app), clock: .system)
    }
    var isNew = false
    let auth = instances.withLock { instances in
      if let auth = instances[app.name], auth.app === app { return auth }
      isNew = true
      let auth = Auth(app: app, apiKey: apiKey, store: userStore(for: app), clock: .system)
      instances[app.name] = auth
      return auth
    }
    if isNew {
      app.onDelete { [name = app.name, weak auth] in
        guard let auth else { return }
        instances.withLock { instances in
          if instances[name] === auth { instances[name] = nil }
        }
        auth.stop()
      }
    }
    return auth
  }

  /// Ends all background tasks, because the app is deleted. The stored user remains.
  private func stop() {
    let refresh = state.withLock { state in
      state.refreshesAutomatically = false
      defer { state.automaticRefresh = nil }
      return state.automaticRefresh
    }
    refresh?.cancel()
    tokenSource.unregister(self)
  }

  // MARK: Settings

  /// The signed-in user; nil if no user is signed in. A stored user of an earlier run is signed in from the
  /// start.
  public var currentUser: User? { state.withLock { $0.user } }

  /// The language of e-mails and messages, such as `fr`; nil for the project's default.
  open var languageCode: String? {
    get { state.withLock { $0.backend.languageCode } }
    set { state.withLock { $0.backend.languageCode = newValue } }
  }

  /// The tenant of users who sign in from now on; nil for the project itself.
  open var tenantID: String? {
    get { state.withLock { $0.backend.tenantID } }
    set { state.withLock { $0.backend.tenantID = newValue } }
  }

  /// Sets `languageCode` to the program's preferred language.
  open func useAppLanguage() {
    languageCode = Bundle.main.preferredLocalizations.first ?? Locale.preferredLanguages.first
  }

  /// The settings for calls of the authentication services.
  var backend: AuthBackend { state.withLock { $0.backend } }
}
