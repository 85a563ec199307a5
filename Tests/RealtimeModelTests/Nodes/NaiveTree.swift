// A naive tree: a simple second implementation of the data model's rules, with dictionaries, full sorts and no shared
// storage. Tests compare `Node` with it.

import RealtimeModel

/// A tree of plain dictionaries, whose keys are UTF-16 code units.
struct NaiveTree {
  var leaf: LeafValue?
  var priority: LeafValue?
  var children: [[UInt16]: NaiveTree] = [:]

  var isEmpty: Bool { leaf == nil && children.isEmpty }

  init() {}

  init(_ node: Node) {
    leaf = node.leafValue
    priority = node.priority?.leafValue
    node.forEachChild { key, child in
      children[Array(key.text.utf16)] = NaiveTree(child)
      return true
    }
  }

  mutating func set(_ path: [String], _ node: Node) {
    guard let first = path.first else {
      self = NaiveTree(node)
      return
    }
    if first == ".priority" {
      if !isEmpty { priority = node.leafValue }
      return
    }
    let key = Array(first.utf16)
    var child = children[key] ?? NaiveTree()
    child.set(Array(path.dropFirst()), node)
    if child.isEmpty {
      children[key] = nil
      if isEmpty { priority = nil }
    } else {
      leaf = nil
      children[key] = child
    }
  }

  func child(_ path: [String]) -> NaiveTree {
    path.reduce(self) { $0.children[Array($1.utf16)] ?? NaiveTree() }
  }

  /// Returns the rank of the value's type, and the number or text to compare within a type.
  private func rank() -> (Int, Double, [UInt16]) {
    switch leaf {
    case nil: return children.isEmpty ? (0, 0, []) : (5, 0, [])
    case .bool(let value)?: return (value ? 2 : 1, 0, [])
    case .int(let value)?: return (3, Double(value), [])
    case .double(let value)?: return (3, value, [])
    case .string(let text)?: return (4, 0, Array(text.utf16))
    case .deferred?: return (9, 0, [])
    }
  }

  private static func compare(_ a: (Int, Double, [UInt16]), _ b: (Int, Double, [UInt16])) -> Int {
    if a.0 != b.0 { return a.0 < b.0 ? -1 : 1 }
    if a.1 != b.1 { return a.1 < b.1 ? -1 : 1 }
    if a.2 == b.2 { return 0 }
    return a.2.lexicographicallyPrecedes(b.2) ? -1 : 1
  }

  private static func compareKeys(_ a: [UInt16], _ b: [UInt16]) -> Int {
    func integer(_ key: [UInt16]) -> Int? {
      let text = String(decoding: key, as: UTF16.self)
      let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
      guard !digits.isEmpty, digits.allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
      guard digits.drop(while: { $0 == "0" }).count <= 10, let value = Int(text) else { return nil }
      return (Int(Int32.min)...Int(Int32.max)).contains(value) ? value : nil
    }
    switch (integer(a), integer(b)) {
    case (let x?, let y?):
      if x != y { return x < y ? -1 : 1 }
      if a.count != b.count { return a.count < b.count ? -1 : 1 }
    case (.some, nil): return -1
    case (nil, .some): return 1
    case (nil, nil): break
    }
    if a == b { return 0 }
    return a.lexicographicallyPrecedes(b) ? -1 : 1
  }

  /// The keys of the children in a query's result, in order.
  func window(_ query: QuerySpec) -> [String] {
    func sortValue(_ key: [UInt16]) -> (Int, Double, [UInt16]) {
      switch query.ordering {
      case .key: return (0, 0, [])
      case .priority:
        var tree = NaiveTree()
        tree.leaf = children[key]?.priority
        return tree.rank()
      case .value: return children[key]?.rank() ?? (0, 0, [])
      case .child(let path): return children[key]?.child(path.keys.map(\.text)).rank() ?? (0, 0, [])
      }
    }
    func bound(_ bound: QuerySpec.Bound) -> (Int, Double, [UInt16]) {
      var tree = NaiveTree()
      tree.leaf = bound.value
      return query.ordering == .key ? (0, 0, []) : tree.rank()
    }
    func boundKey(_ bound: QuerySpec.Bound) -> String? {
      guard query.ordering == .key else { return bound.key?.text }
      guard case .string(let text)? = bound.value else { return nil }
      return text
    }
    func compare(_ key: [UInt16], _ other: QuerySpec.Bound, missing: Int) -> Int {
      let order = NaiveTree.compare(sortValue(key), bound(other))
      if order != 0 { return order }
      switch boundKey(other) {
      case "[MIN_NAME]"?: return 1
      case "[MAX_NAME]"?: return -1
      case let text?: return NaiveTree.compareKeys(key, Array(text.utf16))
      case nil: return missing
      }
    }
    var keys = Array(children.keys).sorted { a, b in
      let order = NaiveTree.compare(sortValue(a), sortValue(b))
      return order != 0 ? order < 0 : NaiveTree.compareKeys(a, b) < 0
    }
    if let start = query.start {
      keys = keys.filter { key in
        let order = compare(key, start, missing: 1)
        return order > 0 || (order == 0 && start.isInclusive)
      }
    }
    if let end = query.end {
      keys = keys.filter { key in
        let order = compare(key, end, missing: -1)
        return order < 0 || (order == 0 && end.isInclusive)
      }
    }
    switch query.limit {
    case .first(let count): keys = Array(keys.prefix(count))
    case .last(let count): keys = Array(keys.suffix(count))
    case nil: break
    }
    return keys.map { String(decoding: $0, as: UTF16.self) }
  }

  /// The complete tree as text, for comparison.
  var text: String {
    var result = leaf.map { "\($0)" } ?? ""
    if let priority { result += "^\(priority)" }
    if !children.isEmpty {
      let list = children.keys.sorted { NaiveTree.compareKeys($0, $1) < 0 }.map {
        "\(String(decoding: $0, as: UTF16.self)):\(children[$0]?.text ?? "")"
      }
      result += "{\(list.joined(separator: ","))}"
    }
    return result
  }
}
