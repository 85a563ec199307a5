// The options of an app, which select its project.
//
// Invariant: the options of a configured app do not change; `FirebaseApp.options` returns copies.

public import Foundation
import Locking

/// Which Firebase project an app belongs to.
///
/// Made from the values of the console, from a `GoogleService-Info.plist`, or by
/// `defaultOptions()`. A copy is independent of its original.
open class FirebaseOptions: NSObject, NSCopying, @unchecked Sendable {
  // Safe to share: both fields of the state are behind one lock.
  private struct State {
    var values: OptionValues
    var isFrozen = false
  }

  private let state: Guarded<State>

  init(values: OptionValues) {
    state = Guarded(State(values: values))
    super.init()
  }

  /// Makes options from the two identifiers that every app has.
  ///
  /// - Parameters:
  ///   - googleAppID: the application id, such as `1:1234567890:ios:0123456789abcdef`.
  ///   - gcmSenderID: the project number.
  public convenience init(googleAppID: String, gcmSenderID GCMSenderID: String) {
    var values = OptionValues(googleAppID: googleAppID, gcmSenderID: GCMSenderID)
    values.bundleID = Bundle.main.bundleIdentifier ?? ""
    self.init(values: values)
  }

  /// Reads options from a property list such as `GoogleService-Info.plist`.
  ///
  /// Returns nil when the file does not exist or holds no dictionary.
  public convenience init?(contentsOfFile plistPath: String) {
    guard let values = OptionValues(propertyListAt: plistPath) else {
      FirebaseLogger.log(
        .error, service: "Core", "The file '\(plistPath)' is missing or is no property list of options")
      return nil
    }
    self.init(values: values)
  }

  /// The options of the app's own `GoogleService-Info.plist`, or nil without a usable file.
  ///
  /// The search covers the main bundle and the other bundles of the process. Where apps have no bundle, it
  /// covers the folder of the executable and the working directory.
  @discardableResult
  open class func defaultOptions() -> FirebaseOptions? {
    for path in DefaultOptionsFile.candidates where FileManager.default.fileExists(atPath: path) {
      if let values = OptionValues(propertyListAt: path) { return FirebaseOptions(values: values) }
    }
    return nil
  }

  /// The key that identifies the app to Google's APIs; nil when there is none.
  open var apiKey: String? {
    get { values.apiKey }
    set { edit("apiKey") { $0.apiKey = newValue } }
  }

  /// The identifier of the app's bundle; empty for a program without a bundle.
  open var bundleID: String {
    get { values.bundleID }
    set { edit("bundleID") { $0.bundleID = newValue } }
  }

  /// The OAuth client that signs users in with Google.
  open var clientID: String? {
    get { values.clientID }
    set { edit("clientID") { $0.clientID = newValue } }
  }

  /// The project number.
  open var gcmSenderID: String {
    get { values.gcmSenderID }
    set { edit("gcmSenderID") { $0.gcmSenderID = newValue } }
  }

  /// The project's id, such as `demo-app`.
  open var projectID: String? {
    get { values.projectID }
    set { edit("projectID") { $0.projectID = newValue } }
  }

  /// The application id, `version:number:platform:fingerprint`.
  open var googleAppID: String {
    get { values.googleAppID }
    set { edit("googleAppID") { $0.googleAppID = newValue } }
  }

  /// The root URL of the project's Realtime Database.
  open var databaseURL: String? {
    get { values.databaseURL }
    set { edit("databaseURL") { $0.databaseURL = newValue } }
  }

  /// The name of the project's storage bucket.
  open var storageBucket: String? {
    get { values.storageBucket }
    set { edit("storageBucket") { $0.storageBucket = newValue } }
  }

  /// The app group through which an app and its extensions share a keychain on Apple platforms.
  open var appGroupID: String? {
    get { values.appGroupID }
    set { edit("appGroupID") { $0.appGroupID = newValue } }
  }

  /// Returns an independent copy, which may be changed.
  open func copy(with zone: NSZone? = nil) -> Any {
    FirebaseOptions(values: values)
  }

  /// Whether all values are equal.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? FirebaseOptions else { return false }
    return values == other.values
  }

  /// Hashes the values, as `isEqual(_:)` compares them.
  open override var hash: Int {
    values.hashValue
  }

  var values: OptionValues {
    state.withLock { $0.values }
  }

  /// Makes the options constant: every later change stops the program.
  func freeze() {
    state.withLock { $0.isFrozen = true }
  }

  private func edit(_ name: String, _ change: (inout OptionValues) -> Void) {
    let isFrozen = state.withLock { state in
      if !state.isFrozen { change(&state.values) }
      return state.isFrozen
    }
    if isFrozen {
      usageException(
        "com.firebase.core", "Attempted to change '\(name)' after an app was configured with these options")
    }
  }
}
