// A tree of the Realtime Database as plain dictionaries, for the naive evaluator of rules. It shares no code with the
// engine's nodes. Text is an array of UTF-16 code units, so that no comparison normalizes it.

package import JSON

/// Text as UTF-16 code units.
package typealias Units = [UInt16]

/// A complete tree in memory.
package struct PlainTree: Equatable, Sendable {
  /// A boolean, number or string.
  package enum Scalar: Equatable, Sendable {
    case bool(Bool)
    case number(Double)
    case string(Units)
  }

  package var leaf: Scalar?
  package var priority: Scalar?
  package var children: [Units: PlainTree] = [:]

  package init() {}

  /// Whether no value exists.
  package var isEmpty: Bool { leaf == nil && children.isEmpty }

  /// Reads JSON in the export format: `.value` and `.priority` are members of an object.
  package init(_ json: JSONValue) {
    switch json {
    case .null, .array: break
    case .object(let object):
      for member in object.members where !member.key.utf8.starts(with: ".".utf8) {
        let child = PlainTree(member.value)
        if !child.isEmpty { children[Units(member.key.utf16)] = child }
      }
      leaf = object[".value"].flatMap(Scalar.init)
      if !isEmpty { priority = object[".priority"].flatMap(Scalar.init) }
    default: leaf = Scalar(json)
    }
  }

  /// The value at a path; an empty tree if there is none.
  package func descendant(_ path: [Units]) -> PlainTree {
    path.reduce(self) { $0.children[$1] ?? PlainTree() }
  }

  /// Replaces the value at a path. A value replaces a leaf above it, and objects without children disappear.
  package mutating func set(_ path: ArraySlice<Units>, to value: PlainTree) {
    guard let key = path.first else {
      self = value
      return
    }
    if key == Units(".priority".utf16) {
      priority = isEmpty ? nil : value.leaf
      return
    }
    var child = children[key] ?? PlainTree()
    child.set(path.dropFirst(), to: value)
    if !child.isEmpty {
      leaf = nil
      children[key] = child
    } else if children.removeValue(forKey: key) != nil, isEmpty {
      priority = nil
    }
  }
}

extension PlainTree.Scalar {
  /// Reads a JSON value; nil for null, an array or an object.
  package init?(_ json: JSONValue) {
    switch json {
    case .bool(let value): self = .bool(value)
    case .int(let value): self = .number(Double(value))
    case .double(let value): self = .number(value)
    case .string(let text): self = .string(Units(text.utf16))
    case .null, .array, .object: return nil
    }
  }
}
