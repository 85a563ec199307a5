// Converts nodes to values for the app.
//
// Invariant: every number and boolean is an NSNumber, so that `as? Int`, `as? Double` and `as? Bool` succeed
// on Linux as they do on Apple's platforms.

import Foundation
import RealtimeModel

/// Converts nodes to the values that an app receives.
enum ValueWriter {
  /// The value for `DataSnapshot.value`. Objects whose keys are array indexes become arrays.
  static func value(_ node: Node) -> Any {
    switch node.content {
    case .empty: return NSNull()
    case .leaf(let leaf): return value(leaf)
    case .children:
      if let length = node.arrayLength {
        var array = [Any](repeating: NSNull(), count: length)
        node.forEachChild { key, child in
          if let index = key.arrayIndex, index < length { array[index] = value(child) }
          return true
        }
        return array
      }
      return object(node, value)
    }
  }

  /// The value in export format: with priorities, and never an array.
  static func exported(_ node: Node) -> Any {
    switch node.content {
    case .empty: return NSNull()
    case .leaf(let leaf):
      guard let priority = node.priority else { return value(leaf) }
      return [".value": value(leaf), ".priority": value(priority.leafValue)] as [String: Any]
    case .children:
      var object = object(node, exported)
      if let priority = node.priority { object[".priority"] = value(priority.leafValue) }
      return object
    }
  }

  private static func object(_ node: Node, _ convert: (Node) -> Any) -> [String: Any] {
    var object = [String: Any](minimumCapacity: node.childCount)
    node.forEachChild { key, child in
      object[key.text] = convert(child)
      return true
    }
    return object
  }

  /// The value of a leaf.
  static func value(_ leaf: LeafValue) -> Any {
    switch leaf {
    case .bool(let value): NSNumber(value: value)
    case .int(let value): NSNumber(value: value)
    case .double(let value): NSNumber(value: value)
    case .string(let value): value
    case .deferred(.timestamp): ServerValue.timestamp()
    case .deferred(.increment(.int(let value))): ServerValue.increment(NSNumber(value: value))
    case .deferred(.increment(.double(let value))): ServerValue.increment(NSNumber(value: value))
    }
  }
}
