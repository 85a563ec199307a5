// Where the signed-in user is kept between runs of the program: the Keychain on Apple's platforms, a file elsewhere.

import FirebaseCore
import Foundation

/// Keeps the record of the signed-in user of one app.
protocol UserStore: Sendable {
  /// Reads the record; nil if nobody is signed in.
  ///
  /// - Throws: an error of the system, or `UserStoreError.damaged` after the damaged record was moved away or deleted.
  func load() throws -> UserRecord?
  /// Replaces the record, or deletes it for nil. It is durable when the call returns.
  func save(_ record: UserRecord?) throws
}

/// A failure that is not one of the system.
enum UserStoreError: Error, CustomStringConvertible {
  case damaged(String)
  case system(operation: String, code: Int32)

  var description: String {
    switch self {
    case .damaged(let place): "the stored user could not be read; it was \(place)"
    case .system(let operation, let code): "\(operation) failed: \(String(cString: strerror(code))) (\(code))"
    }
  }
}

/// Creates the store of an app.
func userStore(for app: FirebaseApp) -> any UserStore {
  #if canImport(Security)
    KeychainUserStore(
      service: "firebase_auth_\(app.options.googleAppID)", account: "\(app.name)_firebase_user")
  #else
    FileUserStore(appID: app.options.googleAppID, appName: app.name)
  #endif
}
