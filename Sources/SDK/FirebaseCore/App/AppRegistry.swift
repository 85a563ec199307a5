// The registry of all configured apps of the process, by name. Invariant: a name belongs to at most one live app.

import Locking

/// The configured apps that were not deleted.
struct AppRegistry {
  static let shared = Guarded(AppRegistry())

  static let defaultName = "__FIRAPP_DEFAULT"

  /// The apps by name; nil until the first app was configured.
  private(set) var apps: [String: FirebaseApp]?

  /// Adds an app. Returns false if its name is in use.
  mutating func add(_ app: FirebaseApp) -> Bool {
    guard apps?[app.name] == nil else { return false }
    apps = apps ?? [:]
    apps?[app.name] = app
    return true
  }

  /// Removes an app. Returns false if it was removed before.
  mutating func remove(_ app: FirebaseApp) -> Bool {
    guard apps?[app.name] === app else { return false }
    apps?[app.name] = nil
    return true
  }

  /// Whether an app may have a name: it may contain letters, digits, hyphens and underscores.
  static func isLegal(_ name: String) -> Bool {
    !name.isEmpty
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default:
          false
        }
      }
  }
}
