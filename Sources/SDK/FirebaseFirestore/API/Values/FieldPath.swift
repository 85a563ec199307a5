// The path of a field, for apps.

import FirestoreModel
public import Foundation

/// The path of a field: one name for each map on the way. Dots in a name are part of it.
open class FieldPath: NSObject, NSCopying, @unchecked Sendable {
  // SAFETY: constants only.
  let path: ModelFieldPath

  /// Makes a path. Stops the program when there are no names or one is empty.
  public init(_ fieldNames: [String]) {
    guard let path = ModelFieldPath(segments: fieldNames) else {
      failInvalidArgument(
        "Invalid field path. Provided names must not be empty, and there must be at least one.")
    }
    self.path = path
  }

  init(_ path: ModelFieldPath) { self.path = path }

  /// The document's own ID, for filters, orders and cursors.
  public class func documentID() -> FieldPath { FieldPath(.documentID) }

  /// A path in dotted form, `a.b`. Stops the program for names that need a `FieldPath`.
  static func parse(_ dotted: String) -> ModelFieldPath {
    if dotted.utf8.contains(where: { "~*/[]".utf8.contains($0) }) {
      failInvalidArgument("Invalid field path (\(dotted)). Paths must not contain '~', '*', '/', '[', or ']'")
    }
    let names = dotted.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard let path = ModelFieldPath(segments: names) else {
      failInvalidArgument(
        "Invalid field path (\(dotted)). Paths must not be empty, begin with '.', end with '.', or"
          + " contain '..'")
    }
    return path
  }

  /// A path given as a dotted string or as a `FieldPath`.
  static func parse(_ key: Any, in call: String) -> ModelFieldPath {
    switch key {
    case let string as String: return parse(string)
    case let path as FieldPath: return path.path
    case let hashable as AnyHashable where hashable.base is String || hashable.base is FieldPath:
      return parse(hashable.base, in: call)
    default:
      failInvalidArgument("\(call) takes field names as Strings or FieldPaths, not \(type(of: key))")
    }
  }

  /// The path itself, which never changes.
  open func copy(with zone: NSZone? = nil) -> Any { self }
  /// Whether all names are equal.
  open override func isEqual(_ object: Any?) -> Bool { (object as? FieldPath)?.path == path }
  /// Hashes the names.
  open override var hash: Int { path.hashValue }
}
