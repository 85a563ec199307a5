// Writes nodes as values for the app.
//
// Invariant: every number and boolean is an NSNumber, so that `as? Int`, `as? Double` and `as? Bool` succeed on Linux
// as on Apple's platforms.

import Foundation
import RealtimeModel

/// Converts nodes to values of the app.
enum ValueWriter {
  /// A value as `DataSnapshot.value` gives it: objects whose keys are indexes become arrays.
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

  /// A value in export format: priorities next to values, never an array.
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

  /// A leaf.
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
