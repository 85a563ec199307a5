// The operations of the Realtime Database that an access policy decides, and the errors of denied operations.

package import RealtimeModel

/// The Realtime Database types that access policies use.
package enum RealtimeAccess: AccessProduct {
  package typealias Operation = TreeOperation
  package typealias View = any TreeView
  package typealias Resource = Path
  /// The namespace of a database.
  package typealias Database = String
  package typealias Failure = RealtimeError

  package static let permissionDenied = RealtimeError.permissionDenied
  package static func administrativeDenial(_ text: String) -> RealtimeError { .permissionDenied }
  package static let credentialsRequired = RealtimeError.permissionDenied
  package static let openRules = rules("true")
  package static let lockedRules = rules("false")

  private static func rules(_ value: String) -> String {
    "{\n    \"rules\": {\n        \".read\": \(value),\n        \".write\": \(value)\n    }\n}"
  }
}

/// A decision about an operation of the Realtime Database.
package typealias RealtimeDecision = AccessDecision<RealtimeAccess>

/// An operation of the Realtime Database.
package enum TreeOperation: AccessOperation {
  /// Read a location once with a query; ``RealtimeModel/QuerySpec/default`` for the complete location.
  case read(Path, QuerySpec)
  /// Listen to a location with a query.
  case listen(Path, QuerySpec)
  /// Replace the value at a location. Server values are resolved already.
  case write(Path)
  /// Replace the values at several locations as one write.
  case merge([Path])
  /// Replace the value at a location if it equals a known value. The error for another value shows the location, so
  /// the engine also requests a decision about reading it, as a separate operation.
  case conditionalWrite(Path)
  /// Write at these locations when the client disconnects. Policies decide it when it is registered, and again when it
  /// runs.
  case onDisconnect([Path])

  /// The locations that the operation reads or writes.
  package var paths: [Path] {
    switch self {
    case .read(let path, _), .listen(let path, _), .write(let path), .conditionalWrite(let path): [path]
    case .merge(let paths), .onDisconnect(let paths): paths
    }
  }

  package var changesData: Bool {
    switch self {
    case .read, .listen: false
    case .write, .merge, .conditionalWrite, .onDisconnect: true
    }
  }

  package var isAdministrative: Bool { false }
  package var administrativeDenial: String { RealtimeError.permissionDenied.message }
}
