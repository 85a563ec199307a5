// A field path: the path of a field in a document.

import FirestoreModel
public import Foundation

/// The path of a field: one name for each nested map. A dot in a name does not separate names.
open class FieldPath: NSObject, NSCopying, @unchecked Sendable {
  // SAFETY: constants only.
  let path: ModelFieldPath

  /// Makes a path. Stops the program if there are no names or a name is empty.
  public init(_ fieldNames: [String]) {
    guard let path = ModelFieldPath(segments: fieldNames) else {
      failInvalidArgument(
        "Invalid field path. Provided names must not be empty, and there must be at least one.")
    }
    self.path = path
  }

  init(_ path: ModelFieldPath) { self.path = path }

  /// The ID of the document, for filters, orders and cursors.
  public class func documentID() -> FieldPath { FieldPath(.documentID) }

  /// Parses a path in dotted form, such as `a.b`. Stops the program for names that need a `FieldPath`.
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

  /// Converts a dotted string or a `FieldPath` to a path.
  static func parse(_ key: Any, in call: String) -> ModelFieldPath {
    switch key {
    case let string as String: return parse(string)
    case let path as FieldPath: return path.path
    case let hashable as AnyHashable where hashable.base is String || hashable.base is FieldPath:
      return parse(hashable.base, in: call)
    default:
      failInvalidArgument("\(call) accepts field names as Strings or FieldPaths, not \(type(of: key))")
    }
  }

  /// Returns the path itself, because it never changes.
  open func copy(with zone: NSZone? = nil) -> Any { self }
  /// Whether all names are equal.
  open override func isEqual(_ object: Any?) -> Bool { (object as? FieldPath)?.path == path }
  /// Hashes the names.
  open override var hash: Int { path.hashValue }
}
