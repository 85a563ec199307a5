// The plain form from rows: values alone, and objects whose keys are mostly 0...n as arrays. Whether an object is an array
// shows only once all its keys are known, and an array's elements lie in another order than they are written in.
//
// Invariant: what is held is the way to the current location, the indexes of the arrays on it, and one small value: most are,
// and are written from one walk over the rows that they lie in.

import JSON
import OrderedStore
import RealtimeModel

/// Writes the plain form.
struct PlainWriter: TreeWriter {
  private enum Place {
    /// An object: its prefix, and the first key that was not looked at.
    case object(prefix: [UInt8], next: [UInt8])
    /// An array: its prefix, its indexes in order, how many of them were written, and how many elements.
    case array(prefix: [UInt8], indexes: [Int32], done: Int, elements: Int)
  }

  private var way: [Place] = []
  private var writer: JSONWriter
  private var isBegun = false
  private let root: [UInt8]

  init(_ path: Path, pretty: Bool, mostRows: Int = 256) {
    self.mostRows = mostRows
    root = RowKeys.row(of: path)
    writer = JSONWriter(pretty: pretty, capacity: 64 << 10)
  }

  var isOver: Bool { isBegun && way.isEmpty }

  var count: Int { writer.bytes.count }

  mutating func take() -> [UInt8] { writer.take() }

  mutating func go(on view: any ReadView) throws {
    if !isBegun {
      isBegun = true
      return try begin(root, view)
    }
    switch way.popLast() {
    case .object(let prefix, let next)?: try object(prefix, from: next, view)
    case .array(let prefix, let indexes, let done, let elements)?:
      try array(prefix, indexes, done, elements, view)
    case nil: return
    }
  }

  /// A value of so few rows, and bytes of them, is put together before it is written.
  private let mostRows: Int
  private static let mostBytes = 32 << 10

  /// Rows of one value, as long as they are few.
  private struct FewRows {
    private var assembler = NodeAssembler()
    private let most: Int
    private var rows = 0
    private var bytes = 0

    init(most: Int) { self.most = most }

    /// Adds a row; false if they are too many.
    mutating func add(_ path: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool {
      rows += 1
      bytes += path.count + value.count
      if rows > 1, rows > most || bytes > PlainWriter.mostBytes { return false }
      var decoder = NodeDecoder(value)
      assembler.add(RowKeys.keys(in: path), try decoder.node())
      return true
    }

    mutating func node() -> Node { assembler.finish() }
  }

  /// Begins with the value at a location: writes a small one.
  private mutating func begin(_ prefix: [UInt8], _ view: any ReadView) throws {
    var few = FewRows(most: mostRows)
    var isSmall = true
    try view.scan(KeyRange(prefix: prefix), reverse: false) { key, value, _ in
      isSmall = try few.add(UnsafeRawBufferPointer(rebasing: key[prefix.count...]), value)
      return isSmall
    }
    if isSmall { return writer.node(few.node(), .plain) }
    if let indexes = try indexes(prefix, view) {
      writer.beginArray()
      way.append(.array(prefix: prefix, indexes: indexes, done: 0, elements: 0))
    } else {
      writer.beginObject()
      way.append(.object(prefix: prefix, next: prefix + [RowKeys.priority + 1]))
    }
  }

  /// Writes an object's children up to its next one that is large, and begins with that.
  private mutating func object(_ prefix: [UInt8], from next: [UInt8], _ view: any ReadView) throws {
    // The child whose rows are gathered; its rows stand together.
    var child: (name: [UInt8], rows: FewRows)?
    var large: [UInt8]?
    var rest: [UInt8]?
    try view.scan(
      KeyRange(start: next, end: KeyRange.successor(ofPrefix: prefix)), reverse: false
    ) { key, value, _ in
      let suffix = UnsafeRawBufferPointer(rebasing: key[prefix.count...])
      let name = suffix.prefix { $0 != RowKeys.terminator }
      guard name.count < suffix.count else { throw NodeDecoder.damaged }
      if child?.name.elementsEqual(name) != true {
        write(&child)
        if writer.bytes.count >= RealtimeExport.pieceBytes {
          rest = Array(key)
          return false
        }
        child = (Array(name), FewRows(most: mostRows))
      }
      let path = UnsafeRawBufferPointer(rebasing: suffix[(name.count + 1)...])
      if try child?.rows.add(path, value) == true { return true }
      large = Array(name)
      return false
    }
    if let large {
      writer.key(String(decoding: large, as: UTF8.self))
      let inner = prefix + large + [RowKeys.terminator]
      way.append(.object(prefix: prefix, next: KeyRange.successor(ofPrefix: inner) ?? inner))
      return try begin(inner, view)
    }
    if let rest {
      way.append(.object(prefix: prefix, next: rest))
    } else {
      write(&child)
      writer.endObject()
    }
  }

  /// Writes a child whose rows were gathered.
  private mutating func write(_ child: inout (name: [UInt8], rows: FewRows)?) {
    guard var done = child else { return }
    child = nil
    writer.key(String(decoding: done.name, as: UTF8.self))
    writer.node(done.rows.node(), .plain)
  }

  /// Writes an array's next element, with the gap before it.
  private mutating func array(
    _ prefix: [UInt8], _ indexes: [Int32], _ done: Int, _ elements: Int, _ view: any ReadView
  ) throws {
    guard done < indexes.count else { return writer.endArray() }
    for _ in elements..<Int(indexes[done]) { writer.null() }
    way.append(
      .array(prefix: prefix, indexes: indexes, done: done + 1, elements: Int(indexes[done]) + 1))
    try begin(prefix + Array(String(indexes[done]).utf8) + [RowKeys.terminator], view)
  }

  /// The indexes of an object that becomes an array, in order; nil if it stays one. Visits one row of each child, up to
  /// the first that is no index.
  private func indexes(_ prefix: [UInt8], _ view: any ReadView) throws -> [Int32]? {
    var indexes: [Int32] = []
    var start: [UInt8]? = prefix + [RowKeys.priority + 1]
    let end = KeyRange.successor(ofPrefix: prefix)
    while let from = start {
      start = nil
      var isIndex = true
      try view.scan(KeyRange(start: from, end: end), reverse: false) { key, _, _ in
        let suffix = UnsafeRawBufferPointer(rebasing: key[prefix.count...])
        let name = suffix.prefix { $0 != RowKeys.terminator }
        guard let index = ChildKey(String(decoding: name, as: UTF8.self)).arrayIndex else {
          isIndex = false
          return false
        }
        indexes.append(Int32(index))
        start = KeyRange.successor(ofPrefix: prefix + name + [RowKeys.terminator])
        return false
      }
      if !isIndex { return nil }
    }
    indexes.sort()
    guard let last = indexes.last, Int(last) < 2 * indexes.count else { return nil }
    return indexes
  }
}
