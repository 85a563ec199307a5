// Reads the onDisconnect operations of sessions from their rows, which survive a restart of the server.
//
// A row has one value, and the number of the operation that registered it. When the session ends, the access policy
// allows or denies all values of one operation together. Rows of earlier versions have no number; the policy decides
// each of them as a separate operation.

import Access
import OrderedStore
import RealtimeModel

/// A value to set when a session ends.
struct DisconnectRow {
  let path: Path
  let value: Node
  /// The number of the operation that registered the value, unique in its session; nil in rows of earlier versions.
  let operation: Int?

  init(path: Path, value: Node, operation: Int?) {
    self.path = path
    self.value = value
    self.operation = operation
  }

  init(_ path: Path, _ decoder: inout NodeDecoder) throws {
    self.path = path
    value = try decoder.node()
    operation = decoder.isAtEnd ? nil : try decoder.count()
  }

  /// Encodes the value of a row.
  static func encode(_ value: Node, of operation: Int?) -> [UInt8] {
    var encoder = NodeEncoder()
    encoder.append(value)
    if let operation { encoder.append(operation) }
    return encoder.bytes
  }
}

/// A session's caller and the values to set when it ends, ancestors before descendants.
struct DisconnectRows {
  var caller = Principal.nobody
  private var rows: [DisconnectRow] = []
  private(set) var isEmpty = true

  var values: [(path: Path, value: Node)] { rows.map { ($0.path, $0.value) } }

  /// The values of each registered operation, in the order of registration.
  var operations: [[(path: Path, value: Node)]] {
    let unnumbered = rows.filter { $0.operation == nil }.map { [(path: $0.path, value: $0.value)] }
    let numbered = Dictionary(grouping: rows.filter { $0.operation != nil }) { $0.operation ?? 0 }
    return unnumbered
      + numbered.sorted { $0.key < $1.key }.map { $0.value.map { (path: $0.path, value: $0.value) } }
  }

  init(session: String, in view: any ReadView) throws {
    let prefix = RowKeys.prefix(ofSession: session)
    var caller = Principal.nobody
    var rows: [DisconnectRow] = []
    var isEmpty = true
    try view.scan(KeyRange(prefix: prefix), reverse: false) { key, value, _ in
      isEmpty = false
      var decoder = NodeDecoder(value)
      guard key.count > prefix.count else { throw NodeDecoder.corrupted }
      if key[prefix.count] == UInt8(ascii: "c") {
        caller = try PrincipalCoding.decode(&decoder)
      } else {
        let path = UnsafeRawBufferPointer(rebasing: key[(prefix.count + 1)...])
        rows.append(try DisconnectRow(Path(keys: RowKeys.keys(in: path)), &decoder))
      }
      return true
    }
    self.caller = caller
    self.rows = rows
    self.isEmpty = isEmpty
  }

  /// The sessions with onDisconnect operations.
  static func sessions(in view: any ReadView) throws -> [String] {
    var sessions: [String] = []
    var start = RowKeys.sessions.start
    while true {
      var found: String?
      try view.scan(KeyRange(start: start, end: RowKeys.sessions.end), reverse: false) { key, _, _ in
        let name = key.dropFirst().prefix { $0 != RowKeys.terminator }
        found = String(decoding: name, as: UTF8.self)
        return false
      }
      guard let found, let next = KeyRange.successor(ofPrefix: RowKeys.prefix(ofSession: found)) else {
        break
      }
      sessions.append(found)
      start = next
    }
    return sessions
  }

  /// The rows at and below a path, ancestors before descendants.
  static func rows(session: String, at path: Path, in view: any ReadView) throws -> [DisconnectRow] {
    let prefix = RowKeys.disconnect(ofSession: session, at: path)
    var rows: [DisconnectRow] = []
    try view.scan(KeyRange(prefix: prefix), reverse: false) { key, value, _ in
      let relative = RowKeys.keys(in: UnsafeRawBufferPointer(rebasing: key[prefix.count...]))
      var decoder = NodeDecoder(value)
      rows.append(try DisconnectRow(Path(keys: path.keys + relative), &decoder))
      return true
    }
    return rows
  }
}

/// An estimate of the values registered at and below a location, without decoding them.
struct DisconnectOutline {
  /// The number of rows, each with one registered value.
  private(set) var rowCount = 0
  /// A lower bound on the number of children next to the path: children of the nodes on the path that are not on it
  /// themselves. nil if the location is a leaf.
  private(set) var siblingCount: Int?

  /// - Parameter path: the path from the location to a descendant. Children next to it are counted only down to the next
  ///   row on the path, because that row's value replaces this part of the value registered at the location.
  init(
    session: String, at location: Path, along path: ArraySlice<ChildKey>, atMost maximum: Int,
    in view: any ReadView
  ) throws {
    var countedPath = path
    for count in 1..<max(1, path.count) {
      let row = RowKeys.disconnect(ofSession: session, at: Path(keys: location.keys + path.prefix(count)))
      guard try view.get(row) != nil else { continue }
      countedPath = path.prefix(count)
      break
    }
    let prefix = RowKeys.disconnect(ofSession: session, at: location)
    var counts: [Int]?
    var rowCount = 0
    try view.scan(KeyRange(prefix: prefix), reverse: false) { key, value, _ in
      rowCount += 1
      guard key.count == prefix.count else { return true }
      var decoder = NodeDecoder(value)
      counts = try decoder.siblingCounts(along: countedPath, atMost: maximum)
      return true
    }
    self.rowCount = rowCount
    // Each row below the location may replace one of the counted children, so the number of these rows is subtracted.
    siblingCount = rowCount == 1 ? counts?.reduce(0, +) : max(0, (counts ?? []).reduce(0, +) - rowCount + 1)
  }
}

extension Node {
  /// The children next to a path: children of the nodes on the path that are not on it themselves. If a node on the path
  /// is a leaf, that leaf is included. No result is inside another.
  func siblings(along path: Path) -> [(path: Path, value: Node)] {
    var siblings: [(path: Path, value: Node)] = []
    var (location, node) = (Path.root, self)
    for next in path.keys {
      if node.isLeaf { return siblings + [(location, node)] }
      node.forEachChild { key, child in
        if key != next { siblings.append((location.child(key), child)) }
        return true
      }
      (location, node) = (location.child(next), node.child(next))
    }
    return siblings
  }
}

extension Path {
  /// The ancestors of this location, from its parent to the root.
  fileprivate var ancestors: [Path] {
    (0..<count).reversed().map { Path(keys: Array(keys.prefix($0))) }
  }
}

/// The cost of a session's onDisconnect operations.
struct DisconnectCost: Equatable {
  /// The number of registered values.
  var count = 0
  /// The bytes in the commit of the session's end: rows, log record, and the keys of cleared rows.
  var bytes = 0

  init() {}

  /// The cost of one value.
  init(_ path: Path, _ value: Node) {
    count = 1
    bytes =
      64 + RowWeight.path(path) + RowWeight.change(path, value)
      + RowWeight.logged(1, estimatedSize: value.estimatedSize)
  }

  /// The cost of the values registered at and below a path.
  init(session: String, at path: Path, in view: any ReadView) throws {
    for row in try DisconnectRows.rows(session: session, at: path, in: view) {
      self += DisconnectCost(row.path, row.value)
    }
  }

  static func += (a: inout DisconnectCost, b: DisconnectCost) {
    a.count += b.count
    a.bytes += b.bytes
  }

  static func -= (a: inout DisconnectCost, b: DisconnectCost) {
    a.count -= b.count
    a.bytes -= b.bytes
  }
}

/// The changes of a session's end, combined so that none is inside another.
struct FoldedChanges {
  private(set) var changes: [(path: Path, value: Node)] = []

  /// Combines values in key order, in which each ancestor directly precedes its descendants. Clients apply a
  /// write to several locations in the same order. The order matters because a location that a removal leaves
  /// empty, even temporarily, loses its priority. Priorities come last, because another value may create
  /// their location.
  init(_ rows: [(path: Path, value: Node)]) {
    // The rows are in byte order, so the values are sorted into key order.
    let values = rows.sorted { $0.path < $1.path }
    for (path, value) in values where !path.isPriority {
      if let last = changes.last, last.path.contains(path) {
        merge(path, value, into: changes.count - 1)
      } else {
        changes.append((path, value))
      }
    }
    var positions: [Path: Int]?
    for (path, value) in values where path.isPriority {
      let positionsByPath =
        positions ?? Dictionary(uniqueKeysWithValues: changes.enumerated().map { ($1.path, $0) })
      positions = positionsByPath
      if let position = ([path.dataPath] + path.dataPath.ancestors).lazy.compactMap({ positionsByPath[$0] })
        .first
      {
        merge(path, value, into: position)
      } else {
        changes.append((path, value))
      }
    }
    changes.sort { $0.path < $1.path }
  }

  private mutating func merge(_ path: Path, _ value: Node, into position: Int) {
    let relative = Path(keys: Array(path.keys.dropFirst(changes[position].path.count)))
    changes[position].value = changes[position].value.setting(relative, to: value)
  }
}
