// The user store: stores the signed-in user between runs of the program, in the Keychain on Apple's platforms
// and in a file on others.

import FirebaseCore
import Foundation

/// Stores the record of the signed-in user of one app.
protocol UserStore: Sendable {
  /// Reads the record; nil if no user is signed in.
  ///
  /// - Throws: an error of the system. `UserStoreError.damaged` if the record was damaged; it was then moved
  ///   or deleted.
  func load() throws -> UserRecord?
  /// Replaces the record, or deletes it if the new one is nil. The change is durable when the call returns.
  func save(_ record: UserRecord?) throws
}

/// A failure of a user store.
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

/// Makes the store of an app.
func userStore(for app: FirebaseApp) -> any UserStore {
  #if canImport(Security)
    KeychainUserStore(
      service: "firebase_auth_\(app.options.googleAppID)", account: "\(app.name)_firebase_user")
  #else
    FileUserStore(appID: app.options.googleAppID, appName: app.name)
  #endif
}
