// Converts the app's values to nodes.
//
// Invariant: the class of an NSNumber distinguishes numbers and booleans. `as? Bool` cannot, because on Linux
// it also succeeds for 0 and 1. Values that the protocol cannot represent are rejected before anything is
// applied or sent.

import FirebaseSharedSwift
import Foundation
import RealtimeModel

/// An optional inside `Any`. An empty one counts as null.
private protocol AnyOptional {
  var wrappedAny: Any? { get }
}

extension Optional: AnyOptional {
  fileprivate var wrappedAny: Any? { self.map { $0 as Any } }
}

/// Converts values of the app to nodes.
struct ValueReader {
  /// The maximum number of UTF-8 bytes of a string.
  static let maximumStringBytes = 10 << 20
  /// The maximum nesting depth of a value.
  static let maximumDepth = 1_000

  /// Converts a value to a node.
  ///
  /// - Parameter path: the location at which the value will be stored, for error messages.
  static func node(_ value: Any?, at path: [String] = []) throws(InvalidValue) -> Node {
    try ValueReader().read(value, path)
  }

  /// Converts a value with a separate priority to a node.
  static func node(_ value: Any?, priority: Any?, at path: [String] = []) throws(InvalidValue) -> Node {
    let node = try ValueReader().read(value, path)
    return node.with(priority: try self.priority(priority, at: path))
  }

  /// Converts a priority: nil, a number, a string or a server value.
  static func priority(_ value: Any?, at path: [String] = []) throws(InvalidValue) -> Priority? {
    let node = try ValueReader().read(value, path)
    guard !node.isEmpty else { return nil }
    guard let leaf = node.leafValue, let priority = try? Priority(leaf) else {
      throw InvalidValue(
        "Invalid priority type. Only nil, numbers, strings and server values are priorities", at: path)
    }
    return priority
  }

  /// Converts the keys and values of an update.
  static func changes(_ values: [AnyHashable: Any]) throws(InvalidValue) -> [(Path, Node)] {
    var changes: [(Path, Node)] = []
    for (key, value) in values {
      guard let text = key as? String else {
        throw InvalidValue("Invalid key \(key) in the update. Only strings are keys", at: [])
      }
      let path: Path
      do {
        path = try PathRules.path(text, allowsPriority: true)
      } catch {
        throw InvalidValue("Invalid key in the update. \(error.reason)", at: [text])
      }
      guard !path.isRoot else { throw InvalidValue("Invalid empty key in the update", at: []) }
      var node = try self.node(value, at: [text])
      if path.isPriority { node = try priority(value, at: [text]).map { .leaf($0.leafValue) } ?? .empty }
      changes.append((path, node))
    }
    changes.sort { $0.0 < $1.0 }
    for (earlier, later) in zip(changes, changes.dropFirst()) where earlier.0.contains(later.0) {
      throw InvalidValue(
        "Invalid update. Path '\(earlier.0.absolute)' is an ancestor of '\(later.0.absolute)'", at: [])
    }
    return changes.inMergeOrder()
  }

  private func read(_ value: Any?, _ path: [String]) throws(InvalidValue) -> Node {
    guard var value else { return .empty }
    while let optional = value as? any AnyOptional {
      guard let wrapped = optional.wrappedAny else { return .empty }
      value = wrapped
    }
    if value is NSNull { return .empty }
    guard path.count <= ValueReader.maximumDepth else {
      throw InvalidValue("Max object depth exceeded: \(ValueReader.maximumDepth)", at: Array(path.prefix(8)))
    }
    if let string = value as? String { return .leaf(.string(try checked(string, path))) }
    if let number = value as? NSNumber { return .leaf(try leaf(number, path)) }
    if let dictionary = value as? [AnyHashable: Any] { return try object(dictionary, path) }
    if let array = value as? [Any] {
      var children: [(ChildKey, Node)] = []
      for (index, element) in array.enumerated() {
        children.append((ChildKey("\(index)"), try read(element, path + ["\(index)"])))
      }
      return .object(children)
    }
    throw InvalidValue(
      "Cannot store object of type \(type(of: value)). Can only store objects of type NSNumber, NSString, "
        + "NSDictionary, and NSArray", at: path)
  }

  private func checked(_ string: String, _ path: [String]) throws(InvalidValue) -> String {
    guard string.utf8.count <= ValueReader.maximumStringBytes else {
      throw InvalidValue(
        "Cannot store a string of more than \(ValueReader.maximumStringBytes) bytes", at: path)
    }
    return string
  }

  private func leaf(_ number: NSNumber, _ path: [String]) throws(InvalidValue) -> LeafValue {
    if number.isBoolean { return .bool(number.boolValue) }
    if number.holdsFloat || number.objCTypeIsLarge {
      let double = number.doubleValue
      guard double.isFinite else { throw InvalidValue("Cannot store NaN or infinite numbers", at: path) }
      return .double(double)
    }
    return .int(number.int64Value)
  }

  private func object(_ dictionary: [AnyHashable: Any], _ path: [String]) throws(InvalidValue) -> Node {
    if let operation = dictionary[".sv"] {
      guard dictionary.keys.allSatisfy({ $0 as? String == ".sv" || $0 as? String == ".priority" }) else {
        throw InvalidValue("Cannot have other keys with server value placeholders", at: path)
      }
      let priority = try ValueReader.priority(dictionary[".priority"], at: path)
      return .leaf(.deferred(try serverValue(operation, path)), priority: priority)
    }
    let priority = try ValueReader.priority(dictionary[".priority"], at: path)
    if let value = dictionary[".value"] {
      guard dictionary.keys.allSatisfy({ $0 as? String == ".value" || $0 as? String == ".priority" }) else {
        throw InvalidValue("Cannot have other keys next to .value", at: path)
      }
      return try read(value, path).with(priority: priority)
    }
    var children: [(ChildKey, Node)] = []
    children.reserveCapacity(dictionary.count)
    for (key, value) in dictionary {
      guard let text = key as? String else {
        throw InvalidValue("Cannot store an object with key \(key). Only strings are keys", at: path)
      }
      if text == ".priority" { continue }
      guard ChildKey.isValid(text), text.utf8.count <= RealtimeLimits.standard.keyBytes else {
        throw InvalidValue(
          "(\(text)) is not a valid key. Keys must be non-empty, at most \(RealtimeLimits.standard.keyBytes) "
            + "bytes, and cannot contain '/' '.' '#' '$' '[' or ']'", at: path)
      }
      children.append((ChildKey(text), try read(value, path + [text])))
    }
    return .object(children, priority: priority)
  }

  private func serverValue(_ operation: Any, _ path: [String]) throws(InvalidValue)
    -> RealtimeModel.ServerValue
  {
    if operation as? String == "timestamp" { return .timestamp }
    if let object = operation as? [AnyHashable: Any], object.count == 1,
      let delta = object["increment"] as? NSNumber,
      !delta.isBoolean, let number = try leaf(delta, path).number
    {
      return .increment(number)
    }
    throw InvalidValue("Unknown server value \(operation)", at: path)
  }
}

extension NSNumber {
  /// Whether this is an unsigned integer that does not fit in a signed 64-bit integer.
  var objCTypeIsLarge: Bool {
    String(cString: objCType) == "Q" && uint64Value > UInt64(Int64.max)
  }
}
