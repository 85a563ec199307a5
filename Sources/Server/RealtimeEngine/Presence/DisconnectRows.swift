// What a session registered for its end, as it stands in its rows: it survives the server that took it.

import OrderedStore
import RealtimeModel

/// A session's caller and the values it wants set when it ends, ancestors before descendants.
struct DisconnectRows {
  private(set) var caller = Caller.anonymous
  private(set) var values: [(path: Path, value: Node)] = []
  private(set) var isEmpty = true

  init(session: String, in view: any ReadView) throws {
    let prefix = RowKeys.prefix(ofSession: session)
    var caller = Caller.anonymous
    var values: [(path: Path, value: Node)] = []
    var isEmpty = true
    try view.scan(KeyRange(prefix: prefix), reverse: false) { key, value, _ in
      isEmpty = false
      var decoder = NodeDecoder(value)
      guard key.count > prefix.count else { throw NodeDecoder.damaged }
      if key[prefix.count] == UInt8(ascii: "c") {
        caller = try CallerCoding.decode(&decoder)
      } else {
        let path = UnsafeRawBufferPointer(rebasing: key[(prefix.count + 1)...])
        values.append((Path(keys: RowKeys.keys(in: path)), try decoder.node()))
      }
      return true
    }
    self.caller = caller
    self.values = values
    self.isEmpty = isEmpty
  }

  /// The values registered at and below a path, ancestors before descendants.
  static func values(
    session: String, at path: Path, in view: any ReadView
  ) throws -> [(path: Path, value: Node)] {
    let prefix = RowKeys.disconnect(ofSession: session, at: path)
    var values: [(path: Path, value: Node)] = []
    try view.scan(KeyRange(prefix: prefix), reverse: false) { key, value, _ in
      let relative = RowKeys.keys(in: UnsafeRawBufferPointer(rebasing: key[prefix.count...]))
      var decoder = NodeDecoder(value)
      values.append((Path(keys: path.keys + relative), try decoder.node()))
      return true
    }
    return values
  }
}

/// What is registered at and below a location in rows, as far as it is known without decoding their values.
struct DisconnectOutline {
  /// How many rows there are.
  private(set) var rows = 0
  /// At least how many values stand beside the way to a location inside; nil where a leaf is all there is.
  private(set) var siblings: Int?

  /// - Parameter way: the way from the location to the other. It is followed to the next row on it: what is registered
  ///   there counts in place of what the value above holds.
  init(
    session: String, at place: Path, beside way: ArraySlice<ChildKey>, atMost most: Int, in view: any ReadView
  ) throws {
    var known = way
    for count in 1..<max(1, way.count) {
      let row = RowKeys.disconnect(ofSession: session, at: Path(keys: place.keys + way.prefix(count)))
      guard try view.get(row) != nil else { continue }
      known = way.prefix(count)
      break
    }
    let prefix = RowKeys.disconnect(ofSession: session, at: place)
    var counts: [Int]?
    var rows = 0
    try view.scan(KeyRange(prefix: prefix), reverse: false) { key, value, _ in
      rows += 1
      guard key.count == prefix.count else { return true }
      var decoder = NodeDecoder(value)
      counts = try decoder.siblings(beside: known, atMost: most)
      return true
    }
    self.rows = rows
    // Each other row may take a sibling away.
    siblings = rows == 1 ? counts?.reduce(0, +) : max(0, (counts ?? []).reduce(0, +) - rows + 1)
  }
}

extension Node {
  /// The values beside the way to a location in this one, none inside another; a leaf on the way stays.
  func parts(beside way: Path) -> [(path: Path, value: Node)] {
    var parts: [(path: Path, value: Node)] = []
    var (place, node) = (Path.root, self)
    for next in way.keys {
      if node.isLeaf { return parts + [(place, node)] }
      node.forEachChild { key, child in
        if key != next { parts.append((place.child(key), child)) }
        return true
      }
      (place, node) = (place.child(next), node.child(next))
    }
    return parts
  }
}

extension Path {
  /// The locations above this one, from its parent to the root.
  fileprivate var ancestors: [Path] {
    (0..<count).reversed().map { Path(keys: Array(keys.prefix($0))) }
  }
}

/// What a session's end will write.
struct DisconnectCost: Equatable {
  /// How many values are registered.
  var count = 0
  /// The bytes that the commit of its end takes for them: rows, log record, and the keys of the rows it clears.
  var bytes = 0

  init() {}

  /// What one value takes.
  init(_ path: Path, _ value: Node) {
    count = 1
    bytes =
      64 + RowWeight.path(path) + RowWeight.change(path, value)
      + RowWeight.logged(1, estimatedSize: value.estimatedSize)
  }

  /// What is registered at and below a path.
  init(session: String, at path: Path, in view: any ReadView) throws {
    for (path, value) in try DisconnectRows.values(session: session, at: path, in: view) {
      self += DisconnectCost(path, value)
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

/// What a session's end changes, brought into a form where no change lies inside another.
struct FoldedChanges {
  private(set) var changes: [(path: Path, value: Node)] = []

  /// Folds values in key order, as clients fold a write to several locations: each ancestor comes before its descendants,
  /// with nothing else in between. The order shows where a removal leaves a location empty for a moment, which ends its
  /// priority. Priorities come last: one may belong to a location that another value brings into being.
  init(_ rows: [(path: Path, value: Node)]) {
    // Rows stand in the order of their bytes.
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
      let known =
        positions ?? Dictionary(uniqueKeysWithValues: changes.enumerated().map { ($1.path, $0) })
      positions = known
      if let position = ([path.dataPath] + path.dataPath.ancestors).lazy.compactMap({ known[$0] }).first {
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
