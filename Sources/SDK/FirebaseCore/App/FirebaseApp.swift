// An app: one set of options with a name. All Firebase products are created for an app.
//
// Invariant: an app's options never change. Deleting an app shuts down the products that use it.

public import Foundation
import Locking

/// The entry point to Firebase: one set of options with a name.
///
/// ```swift
/// let options = FirebaseOptions(googleAppID: "1:1234567890:ios:0123456789abcdef", gcmSenderID: "1234567890")
/// options.projectID = "demo-app"
/// FirebaseApp.configure(options: options)
/// ```
///
/// Safe to use from any thread.
open class FirebaseApp: NSObject, @unchecked Sendable {
  // Safe to share: constants, and state behind a lock.
  private struct State {
    var isDataCollectionDefaultEnabled = true
    var teardown: [@Sendable () -> Void] = []
    var isDeleted = false
    var hasStartedAuth = false
  }

  private let configuration: FirebaseOptions
  private let state = Guarded(State())

  /// The source of ID tokens, for FirebaseAuth. Other products use `authTokens`.
  package let authTokenSource = TokenSource()

  /// The source of App Check tokens. It has no tokens until a provider is registered.
  package let appCheckTokens = TokenSource()

  /// The app's name; `__FIRAPP_DEFAULT` for the default app.
  public let name: String

  init(name: String, options: FirebaseOptions) {
    self.name = name
    configuration = options
    super.init()
  }

  /// Configures the default app from `GoogleService-Info.plist`.
  ///
  /// Stops the program if no valid file is found, or if the default app is already configured.
  open class func configure() {
    guard let options = FirebaseOptions.defaultOptions() else {
      usageException(
        "com.firebase.core",
        "`FirebaseApp.configure()` could not find a valid GoogleService-Info.plist in the project. "
          + "Add the file, or use `FirebaseApp.configure(options:)`")
    }
    configure(options: options)
  }

  /// Configures the default app.
  ///
  /// Stops the program if the default app is already configured, or if the application ID is malformed. The
  /// options must not be changed afterwards.
  open class func configure(options: FirebaseOptions) {
    register(name: AppRegistry.defaultName, options: options)
  }

  /// Configures an additional app with a name.
  ///
  /// Stops the program if the name is in use, is empty, or contains characters other than letters, digits,
  /// `-` and `_`. A malformed application ID also stops the program.
  open class func configure(name: String, options: FirebaseOptions) {
    guard !name.isEmpty else {
      usageException("com.firebase.core", "Neither name nor options can be empty")
    }
    guard AppRegistry.isLegal(name) else {
      usageException(
        "com.firebase.core",
        "App name can only contain alphanumeric, hyphen (-), and underscore (_) characters")
    }
    register(name: name, options: options)
  }

  private class func register(name: String, options: FirebaseOptions) {
    guard options.values.hasWellFormedAppID else {
      usageException(
        "com.firebase.core",
        "Configuration fails. It may be caused by an invalid GOOGLE_APP_ID '\(options.googleAppID)'; "
          + "it looks like 1:1234567890:ios:0123456789abcdef")
    }
    let copy = FirebaseOptions(values: options.values)
    copy.freeze()
    options.freeze()
    let app = FirebaseApp(name: name, options: copy)
    guard AppRegistry.shared.withLock({ $0.add(app) }) else {
      let which = name == AppRegistry.defaultName ? "Default app" : "App named \(name)"
      usageException("com.firebase.core", "\(which) has already been configured.")
    }
    NotificationCenter.default.post(
      name: Notification.Name("FIRAppReadyToConfigureSDKNotification"), object: self,
      userInfo: [
        "FIRAppNameKey": name,
        "FIRAppIsDefaultAppKey": NSNumber(value: name == AppRegistry.defaultName),
        "FIRGoogleAppIDKey": copy.googleAppID,
      ])
  }

  /// The default app, or nil before `configure()`.
  @discardableResult
  open class func app() -> FirebaseApp? {
    let app = AppRegistry.shared.withLock { $0.apps?[AppRegistry.defaultName] }
    if app == nil {
      FirebaseLogger.log(
        .error, service: "Core",
        "The default Firebase app has not yet been configured. Add `FirebaseApp.configure()` to your "
          + "program's start")
    }
    return app
  }

  /// The app with a name; nil if there is none.
  @discardableResult
  open class func app(name: String) -> FirebaseApp? {
    let app = AppRegistry.shared.withLock { $0.apps?[name] }
    if app == nil {
      FirebaseLogger.log(.error, service: "Core", "App with name \(name) does not exist")
    }
    return app
  }

  /// All apps by name; nil before the first app was configured.
  open class var allApps: [String: FirebaseApp]? {
    AppRegistry.shared.withLock { $0.apps }
  }

  /// Deletes the app. The products release their resources for the app, and its name becomes available.
  ///
  /// - Parameter completion: receives false if the app was deleted before.
  open func delete(_ completion: @escaping @Sendable (Bool) -> Void) {
    completion(remove())
  }

  /// Deletes the app. The products release their resources for the app, and its name becomes available.
  ///
  /// - Returns: false if the app was deleted before.
  @discardableResult
  open func delete() async -> Bool {
    remove()
  }

  private func remove() -> Bool {
    guard AppRegistry.shared.withLock({ $0.remove(self) }) else { return false }
    let teardown = state.withLock { state in
      state.isDeleted = true
      defer { state.teardown = [] }
      return state.teardown
    }
    for action in teardown { action() }
    return true
  }

  /// Registers an action that shuts down a product when the app is deleted. If the app was already deleted,
  /// the action runs immediately. Products call this once for each instance.
  package func onDelete(_ action: @escaping @Sendable () -> Void) {
    let isDeleted = state.withLock { state in
      if !state.isDeleted { state.teardown.append(action) }
      return state.isDeleted
    }
    if isDeleted { action() }
  }

  /// The ID tokens of the signed-in user. The first access starts FirebaseAuth if the program links it, so
  /// that a user of the previous run is signed in again.
  package var authTokens: TokenSource {
    let isFirst = state.withLock { state in
      defer { state.hasStartedAuth = true }
      return !state.hasStartedAuth && !state.isDeleted
    }
    if isFirst { TokenComponents.start(TokenComponents.auth, for: self) }
    return authTokenSource
  }

  /// Whether the app was deleted.
  package var isDeleted: Bool { state.withLock { $0.isDeleted } }

  /// A copy of the options that the app was configured with.
  open var options: FirebaseOptions {
    FirebaseOptions(values: configuration.values)
  }

  /// Whether products may collect diagnostic data by default. The products of this SDK collect no data.
  open var isDataCollectionDefaultEnabled: Bool {
    get { state.withLock { $0.isDataCollectionDefaultEnabled } }
    set { state.withLock { $0.isDataCollectionDefaultEnabled = newValue } }
  }

  /// Whether this is the default app.
  package var isDefault: Bool {
    name == AppRegistry.defaultName
  }
}
