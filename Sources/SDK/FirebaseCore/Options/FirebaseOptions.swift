// The options of an app, which identify its Firebase project.
//
// Invariant: the options of a configured app do not change; `FirebaseApp.options` returns copies.

public import Foundation
import Locking

/// The options that identify the Firebase project of an app.
///
/// An app makes them from the values of the Firebase console, from a `GoogleService-Info.plist`, or with
/// `defaultOptions()`. A copy is independent of its original.
open class FirebaseOptions: NSObject, NSCopying, @unchecked Sendable {
  // Safe to share: all state is behind one lock.
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
  ///   - googleAppID: the application ID, such as `1:1234567890:ios:0123456789abcdef`.
  ///   - gcmSenderID: the project number.
  public convenience init(googleAppID: String, gcmSenderID GCMSenderID: String) {
    var values = OptionValues(googleAppID: googleAppID, gcmSenderID: GCMSenderID)
    values.bundleID = Bundle.main.bundleIdentifier ?? ""
    self.init(values: values)
  }

  /// Reads options from a property list file such as `GoogleService-Info.plist`.
  ///
  /// Returns nil if the file does not exist or does not contain a dictionary.
  public convenience init?(contentsOfFile plistPath: String) {
    guard let values = OptionValues(propertyListAt: plistPath) else {
      FirebaseLogger.log(
        .error, service: "Core", "The file '\(plistPath)' is missing or is not a property list of options")
      return nil
    }
    self.init(values: values)
  }

  /// The options of the app's `GoogleService-Info.plist`; nil if no valid file is found.
  ///
  /// The search includes the main bundle and the other bundles of the process. On platforms where apps have
  /// no bundle, it includes the folder of the executable and the working directory.
  @discardableResult
  open class func defaultOptions() -> FirebaseOptions? {
    for path in DefaultOptionsFile.candidates where FileManager.default.fileExists(atPath: path) {
      if let values = OptionValues(propertyListAt: path) { return FirebaseOptions(values: values) }
    }
    return nil
  }

  /// The key that identifies the app to Google's APIs; nil if there is none.
  open var apiKey: String? {
    get { values.apiKey }
    set { edit("apiKey") { $0.apiKey = newValue } }
  }

  /// The identifier of the app's bundle; empty for a program without a bundle.
  open var bundleID: String {
    get { values.bundleID }
    set { edit("bundleID") { $0.bundleID = newValue } }
  }

  /// The OAuth client ID for signing in with Google.
  open var clientID: String? {
    get { values.clientID }
    set { edit("clientID") { $0.clientID = newValue } }
  }

  /// The project number.
  open var gcmSenderID: String {
    get { values.gcmSenderID }
    set { edit("gcmSenderID") { $0.gcmSenderID = newValue } }
  }

  /// The project's ID, such as `demo-app`.
  open var projectID: String? {
    get { values.projectID }
    set { edit("projectID") { $0.projectID = newValue } }
  }

  /// The application ID, `version:number:platform:fingerprint`.
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

  /// The app group with which an app and its extensions share a keychain on Apple's platforms.
  open var appGroupID: String? {
    get { values.appGroupID }
    set { edit("appGroupID") { $0.appGroupID = newValue } }
  }

  /// Returns an independent copy, which can be changed.
  open func copy(with zone: NSZone? = nil) -> Any {
    FirebaseOptions(values: values)
  }

  /// Whether all values are equal.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? FirebaseOptions else { return false }
    return values == other.values
  }

  /// Hashes the values that `isEqual(_:)` compares.
  open override var hash: Int {
    values.hashValue
  }

  var values: OptionValues {
    state.withLock { $0.values }
  }

  /// Makes the options constant. Later changes stop the program.
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
