// Reads and replaces values of the tree, which is stored as one row for each leaf, by the rules of Firebase's
// data model.
//
// Invariants of the rows
//   1. A location with a leaf row has no other row at or below it.
//   2. A location has a priority row only if a child has rows.
//   3. The cost of replacing a value depends on the depth of its location and the numbers of rows written and
//      replaced. Beyond a limit, replaced rows cost nothing here: they are cleared in the background (see
//      Generations/).

import OrderedStore
import RealtimeModel

/// The tree as one batch, or one consistent read, sees it.
struct Tree {
  let view: any ReadView
  let cache: TreeCache?
  let limits: RealtimeLimits

  // MARK: Reading

  /// The value at a path. For a path that ends in `.priority`, the priority as a leaf.
  ///
  /// - Throws: ``RealtimeError/tooBig`` above the limit of a response; errors of the store.
  func node(at path: Path) throws -> Node {
    if path.isPriority { return try priority(at: path.dataPath).map { .leaf($0.leafValue) } ?? .empty }
    if let node = cache?.node(at: path) {
      // Writes may have enlarged the cached node since it was read.
      guard node.estimatedSize <= limits.responseBytes else { throw RealtimeError.tooBig }
      return node
    }
    let node = try load(path)
    cache?.insert(node, at: path)
    return node
  }

  /// The value at a path if it is cached or has few rows; otherwise nil.
  ///
  /// - Throws: the errors of ``node(at:)``.
  func nodeIfSmall(at path: Path, _ staging: StagingLimits) throws -> Node? {
    if path.isPriority || cache?.node(at: path) != nil { return try node(at: path) }
    guard let node = try load(path, atMost: staging.readRows, staging.readBytes) else { return nil }
    cache?.insert(node, at: path)
    return node
  }

  private func load(_ path: Path) throws -> Node { try load(path, atMost: .max, .max) ?? .empty }

  private func load(_ path: Path, atMost rows: Int, _ bytes: Int) throws -> Node? {
    let prefix = RowKeys.row(of: path)
    var assembler = NodeAssembler()
    var (rows, bytes) = (rows, bytes)
    try view.scan(KeyRange(prefix: prefix), reverse: false) { key, value, _ in
      var decoder = NodeDecoder(value)
      let suffix = UnsafeRawBufferPointer(rebasing: key[prefix.count...])
      assembler.add(RowKeys.keys(in: suffix), try decoder.node())
      guard assembler.estimatedSize <= limits.responseBytes else { throw RealtimeError.tooBig }
      rows -= 1
      bytes -= key.count + value.count
      return rows >= 0 && bytes >= 0
    }
    return rows >= 0 && bytes >= 0 ? assembler.finish() : nil
  }

  /// The keys of a location's children, or its leaf value. Reads one row of each child.
  ///
  /// - Throws: ``RealtimeError/tooBig`` above the limit of a response; errors of the store.
  func shallow(at path: Path) throws -> ShallowNode {
    if let node = cache?.node(at: path) {
      let shallow = ShallowNode(node)
      guard shallow.estimatedSize <= limits.responseBytes else { throw RealtimeError.tooBig }
      return shallow
    }
    let prefix = RowKeys.row(of: path)
    var leaf: LeafValue?
    var keys: [ChildKey] = []
    var size = 0
    var start: [UInt8]? = prefix
    let end = KeyRange.successor(ofPrefix: prefix)
    while let next = start {
      start = nil
      try view.scan(KeyRange(start: next, end: end), reverse: false) { key, value, _ in
        let suffix = UnsafeRawBufferPointer(rebasing: key[prefix.count...])
        guard let first = suffix.first else {
          var decoder = NodeDecoder(value)
          leaf = try decoder.node().leafValue
          return false
        }
        let cut = first == RowKeys.priority ? 1 : (suffix.firstIndex(of: RowKeys.terminator) ?? 0) + 1
        if first != RowKeys.priority {
          let found = RowKeys.keys(in: UnsafeRawBufferPointer(rebasing: suffix[..<cut]))
          size += found.reduce(0) { $0 + ShallowNode.estimatedSize(of: $1) }
          guard size <= limits.responseBytes else { throw RealtimeError.tooBig }
          keys.append(contentsOf: found)
        }
        start = KeyRange.successor(ofPrefix: prefix + Array(suffix[..<cut]))
        return false
      }
    }
    if let leaf { return .leaf(leaf) }
    return keys.isEmpty ? .empty : .children(keys.sorted())
  }

  /// The leaf or the priority at a path; empty for an object. Reads one row.
  func leaf(at path: Path) throws -> Node {
    if path.isPriority { return try node(at: path) }
    if let known = cache?.node(at: path) { return known.isLeaf ? known : .empty }
    let leaf: Node
    switch try presence(at: path) {
    case .object: return .empty
    case .empty: leaf = .empty
    case .leaf(let found): leaf = found
    }
    cache?.insert(leaf, at: path)
    return leaf
  }

  /// The priority of a location; nil for none. Reads at most two rows.
  func priority(at path: Path) throws -> Priority? {
    if let node = cache?.node(at: path) { return node.priority }
    if case .leaf(let node) = try presence(at: path) { return node.priority }
    return try priorityRow(at: path)
  }

  /// The priority of a location that is not a leaf. Reads one row.
  func objectPriority(at path: Path) throws -> Priority? {
    if let node = cache?.node(at: path) { return node.priority }
    return try priorityRow(at: path)
  }

  private func priorityRow(at path: Path) throws -> Priority? {
    guard let row = try view.get(RowKeys.row(of: path.child(.priority))) else { return nil }
    return try NodeDecoder.decode(row.value).leafValue.map { try Priority($0) }
  }

  /// The kind of a location, which its first row shows.
  enum Presence {
    case empty
    case leaf(Node)
    case object
  }

  func presence(at path: Path) throws -> Presence {
    let prefix = RowKeys.row(of: path)
    var presence = Presence.empty
    try view.scan(KeyRange(prefix: prefix), reverse: false) { key, value, _ in
      if key.count == prefix.count {
        var decoder = NodeDecoder(value)
        presence = .leaf(try decoder.node())
      } else {
        presence = .object
      }
      return false
    }
    return presence
  }

  // MARK: Writing

  /// Replaces the value, or the priority, at a path.
  ///
  /// After a removal the caller may remove more siblings of the location. Before it changes siblings in
  /// another way it has to call ``clearOrphanedPriorities(above:in:)``.
  ///
  /// - Parameters:
  ///   - object: a location that is known to have children, so that it needs no check for a leaf; nil if none
  ///     is known.
  ///   - gap: a range without rows that saves scans (see `RowGap`); nil if none is tracked.
  /// - Returns: whether the value changed, and the previous value if it was known without reading all of it.
  func set(
    _ path: Path, to node: Node, inside object: Path? = nil, _ gap: inout RowGap?, in writer: BatchWriter
  ) throws -> (changed: Bool, before: Node?) {
    if path.isPriority {
      gap?.forget()
      return (try setPriority(at: path.dataPath, to: node, in: writer), nil)
    }
    let row = RowKeys.row(of: path)
    var before = cache?.node(at: path)
    if let before, before == node { return (false, before) }
    var isObject = before.map { !$0.isEmpty && !$0.isLeaf } ?? false
    var rows: [[UInt8]]?
    if before == nil, let end = KeyRange.successor(ofPrefix: row),
      gap?.hasRow(KeyRange(start: row, end: end)) == false
    {
      before = .empty
      if node.isEmpty { return (false, before) }
    } else if before == nil {
      // Most writes replace a leaf. A point read finds its single row, and searches fewer of the store's
      // tables than a scan.
      if let leaf = try writer.get(row) {
        before = try NodeDecoder.decode(leaf.value)
      } else {
        rows = try writer.rows(at: row, &gap)
        if rows?.isEmpty == true { before = .empty }
      }
      if let before, before == node { return (false, before) }
      isObject = before == nil
    } else if isObject {
      rows = try writer.rows(at: row, &gap)
    }
    if isObject {
      try writer.clearLocation(row, rows)
      gap?.recordClear(prefix: row)
    } else if before?.isLeaf == true, !node.isLeaf {
      try writer.clear(row)
      gap?.recordClear(prefix: row)
    }
    if node.isEmpty {
      cache?.apply(path, node, at: writer.commitVersion)
    } else {
      if before?.isEmpty == true { try replaceLeaf(above: path, inside: object, &gap, in: writer) }
      cache?.apply(path, node, at: writer.commitVersion)
      try write(node, at: path, in: writer)
      gap?.recordWrite(prefix: row)
    }
    return (true, before)
  }

  /// Replaces a location by a staged generation (rows under a separate prefix), which has at least one row. The new
  /// value is not in memory, so the cached value is removed.
  func install(_ generation: StagedGeneration, at path: Path, in writer: BatchWriter) throws {
    if case .empty = try presence(at: path) { try replaceLeaf(above: path, in: writer) }
    try writer.install(generation, at: RowKeys.row(of: path))
    cache?.forget(path)
  }

  /// Replaces a location by the rows of a staged generation.
  ///
  /// - Parameter deferred: the paths in `node` of values that were not staged: resolved server values.
  /// - Returns: the previous value if it was empty or a leaf.
  func install(
    _ generation: StagedGeneration, at path: Path, _ node: Node, _ deferred: [Path], in writer: BatchWriter
  ) throws -> Node? {
    let before: Node? =
      switch try presence(at: path) {
      case .empty: .empty
      case .leaf(let leaf): leaf
      case .object: nil
      }
    if before?.isEmpty == true { try replaceLeaf(above: path, in: writer) }
    try writer.install(generation, at: RowKeys.row(of: path))
    cache?.apply(path, node, at: writer.commitVersion)
    for relative in deferred {
      try writer.set(RowKeys.row(of: path.appending(relative)), NodeEncoder.encode(node.descendant(relative)))
    }
    return before
  }

  private func write(_ node: Node, at path: Path, in writer: BatchWriter) throws {
    try node.forEachLeaf { relative, leaf in
      try writer.set(RowKeys.row(of: path.appending(relative)), NodeEncoder.encode(leaf))
    }
  }

  private func setPriority(at path: Path, to value: Node, in writer: BatchWriter) throws -> Bool {
    let priority = try value.leafValue.map { try Priority($0) }
    let row = RowKeys.row(of: path.child(.priority))
    switch try presence(at: path) {
    case .empty: return false
    case .leaf(let leaf):
      if leaf.priority == priority { return false }
      try writer.set(RowKeys.row(of: path), NodeEncoder.encode(leaf.with(priority: priority)))
    case .object:
      if try priorityRow(at: path) == priority { return false }
      if let priority {
        try writer.set(row, NodeEncoder.encode(.leaf(priority.leafValue)))
      } else {
        try writer.clear(row)
      }
    }
    cache?.apply(path.child(.priority), value, at: writer.commitVersion)
    return true
  }

  /// If an ancestor of a location that gets a value is a leaf, turns the leaf into an object with the same
  /// priority.
  private func replaceLeaf(above path: Path, in writer: BatchWriter) throws {
    var noGap: RowGap?
    try replaceLeaf(above: path, inside: nil, &noGap, in: writer)
  }

  private func replaceLeaf(
    above path: Path, inside object: Path?, _ gap: inout RowGap?, in writer: BatchWriter
  ) throws {
    var child = path
    while let location = child.parent {
      if let object, location.contains(object) { return }
      if let known = cache?.node(at: location), !known.isEmpty, !known.isLeaf { return }
      let key = RowKeys.row(of: location)
      if gap?.covers(key) != true, let row = try view.get(key) {
        gap?.forget()
        let leaf = try NodeDecoder.decode(row.value)
        try writer.clear(key)
        if let priority = leaf.priority {
          try writer.set(
            RowKeys.row(of: location.child(.priority)), NodeEncoder.encode(.leaf(priority.leafValue)))
        }
        return
      }
      // The location has another child, so it is an object, and none of its ancestors is a leaf.
      if try hasSibling(after: child, in: location, gap) { return }
      child = location
    }
  }

  /// Clears the priorities of ancestors that lost their last child.
  ///
  /// - Returns: these ancestors, the lowest first.
  func clearOrphanedPriorities(above path: Path, in writer: BatchWriter) throws -> [Path] {
    var child = path
    var emptied: [Path] = []
    while let location = child.parent {
      if let known = cache?.node(at: location), !known.isEmpty { return emptied }
      if try hasSibling(after: child, in: location) || hasSibling(before: child, in: location) {
        return emptied
      }
      let priority = RowKeys.row(of: location.child(.priority))
      if try view.get(priority) != nil { try writer.clear(priority) }
      child = location
      emptied.append(location)
    }
    return emptied
  }

  /// Whether a location has another child after `child`. Callers check this before
  /// ``hasSibling(before:in:)``: an update removes children in order, so a reverse scan has to skip many
  /// removed rows.
  private func hasSibling(
    after child: Path, in location: Path, _ gap: RowGap? = nil
  ) throws -> Bool {
    guard let start = KeyRange.successor(ofPrefix: RowKeys.row(of: child)) else { return false }
    let end = KeyRange.successor(ofPrefix: RowKeys.row(of: location))
    let range = KeyRange(start: start, end: end)
    if let known = gap?.hasRow(range) { return known }
    return try hasRow(range, reverse: false)
  }

  private func hasSibling(before child: Path, in location: Path) throws -> Bool {
    let start = RowKeys.row(of: location) + [RowKeys.priority + 1]
    return try hasRow(KeyRange(start: start, end: RowKeys.row(of: child)), reverse: true)
  }

  private func hasRow(_ range: KeyRange, reverse: Bool) throws -> Bool {
    var found = false
    try view.scan(range, reverse: reverse) { _, _, _ in
      found = true
      return false
    }
    return found
  }

  /// Whether a range has a value that is not at or below one of the given locations.
  ///
  /// - Parameters:
  ///   - locations: locations in the range, in any order, none inside another.
  ///   - beforeScan: called before each read of rows; an error ends the search.
  func hasValue(
    _ range: KeyRange, outside locations: some Sequence<Path>, beforeScan: () throws -> Void = {}
  ) throws -> Bool {
    var start = range.start
    // Rows are sorted by bytes, locations by keys.
    for row in locations.map({ RowKeys.row(of: $0) }).sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      if start.lexicographicallyPrecedes(row) {
        try beforeScan()
        if try hasValue(KeyRange(start: start, end: row)) { return true }
      }
      guard let next = KeyRange.successor(ofPrefix: row) else { return false }
      start = next
    }
    if let end = range.end, !start.lexicographicallyPrecedes(end) { return false }
    try beforeScan()
    return try hasValue(KeyRange(start: start, end: range.end))
  }

  /// Whether a range has a row that is not a priority. A priority row exists only together with a row of a value.
  private func hasValue(_ range: KeyRange) throws -> Bool {
    var found = false
    try view.scan(range, reverse: false) { key, _, _ in
      found = key.last != RowKeys.priority
      return !found
    }
    return found
  }
}

extension ShallowNode {
  init(_ node: Node) {
    switch node.content {
    case .empty: self = .empty
    case .leaf(let value): self = .leaf(value)
    case .children: self = .children(node.childKeys)
    }
  }

  /// The estimated size in bytes of JSON.
  var estimatedSize: Int {
    switch self {
    case .empty: 4
    case .leaf(let value): Node.leaf(value).estimatedSize
    case .children(let keys): keys.reduce(0) { $0 + ShallowNode.estimatedSize(of: $1) }
    }
  }

  /// The estimated size of one key with its quotes and `true`.
  static func estimatedSize(of key: ChildKey) -> Int { key.text.utf8.count + 8 }
}
