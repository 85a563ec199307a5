// Converts rows to plain JSON: values without priorities, and objects whose keys are mostly 0...n as arrays.
//
// All keys of an object must be known to decide whether it is an array. So the keys are read before the
// values. Also, rows store the elements of an array in another order ("10" before "9") than JSON.
//
// Invariant: memory holds only the ancestors of the current location, the indexes of arrays among them, and
// one small value. Most values are small and are written from a single scan.

import JSON
import OrderedStore
import RealtimeModel

/// Writes plain JSON.
struct PlainWriter: TreeWriter {
  private enum Frame {
    /// An object: the prefix of its rows, and the next key to scan.
    case object(prefix: [UInt8], next: [UInt8])
    /// An array: the prefix of its rows, its indexes in order, and the numbers of written indexes (`done`)
    /// and of written elements including nulls (`elements`).
    case array(prefix: [UInt8], indexes: [Int32], done: Int, elements: Int)
  }

  private var stack: [Frame] = []
  private var writer: JSONWriter
  private var isBegun = false
  private let root: [UInt8]

  init(_ path: Path, pretty: Bool, maximumBufferedRows: Int = 256) {
    self.maximumBufferedRows = maximumBufferedRows
    root = RowKeys.row(of: path)
    writer = JSONWriter(pretty: pretty, capacity: 64 << 10)
  }

  var isOver: Bool { isBegun && stack.isEmpty }

  var count: Int { writer.bytes.count }

  mutating func takeOutput() -> [UInt8] { writer.take() }

  mutating func write(from view: any ReadView) throws {
    if !isBegun {
      isBegun = true
      return try begin(root, view)
    }
    switch stack.popLast() {
    case .object(let prefix, let next)?: try object(prefix, from: next, view)
    case .array(let prefix, let indexes, let done, let elements)?:
      try array(prefix, indexes, done, elements, view)
    case nil: return
    }
  }

  /// Maximum number of rows of a value that is assembled in memory before it is written, and of their bytes.
  private let maximumBufferedRows: Int
  private static let maximumBufferedBytes = 32 << 10

  /// The rows of one small value.
  private struct BufferedRows {
    private var assembler = NodeAssembler()
    private let maximum: Int
    private var rows = 0
    private var bytes = 0

    init(maximum: Int) { self.maximum = maximum }

    /// Adds a row. Returns false if there are too many.
    mutating func add(_ path: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool {
      rows += 1
      bytes += path.count + value.count
      if rows > 1, rows > maximum || bytes > PlainWriter.maximumBufferedBytes { return false }
      var decoder = NodeDecoder(value)
      assembler.add(RowKeys.keys(in: path), try decoder.node())
      return true
    }

    mutating func node() -> Node { assembler.finish() }
  }

  /// Begins the value at a location; a small value is written completely.
  private mutating func begin(_ prefix: [UInt8], _ view: any ReadView) throws {
    var buffered = BufferedRows(maximum: maximumBufferedRows)
    var isSmall = true
    try view.scan(KeyRange(prefix: prefix), reverse: false) { key, value, _ in
      isSmall = try buffered.add(UnsafeRawBufferPointer(rebasing: key[prefix.count...]), value)
      return isSmall
    }
    if isSmall { return writer.node(buffered.node(), .plain) }
    if let indexes = try indexes(prefix, view) {
      writer.beginArray()
      stack.append(.array(prefix: prefix, indexes: indexes, done: 0, elements: 0))
    } else {
      writer.beginObject()
      stack.append(.object(prefix: prefix, next: prefix + [RowKeys.priority + 1]))
    }
  }

  /// Writes an object's children up to the next large child, and begins to write that child.
  private mutating func object(_ prefix: [UInt8], from next: [UInt8], _ view: any ReadView) throws {
    // The child whose rows are being collected. The rows of a child are contiguous.
    var child: (name: [UInt8], rows: BufferedRows)?
    var large: [UInt8]?
    var rest: [UInt8]?
    try view.scan(
      KeyRange(start: next, end: KeyRange.successor(ofPrefix: prefix)), reverse: false
    ) { key, value, _ in
      let suffix = UnsafeRawBufferPointer(rebasing: key[prefix.count...])
      let name = suffix.prefix { $0 != RowKeys.terminator }
      guard name.count < suffix.count else { throw NodeDecoder.corrupted }
      if child?.name.elementsEqual(name) != true {
        writeChild(&child)
        if writer.bytes.count >= RealtimeExport.chunkBytes {
          rest = Array(key)
          return false
        }
        child = (Array(name), BufferedRows(maximum: maximumBufferedRows))
      }
      let path = UnsafeRawBufferPointer(rebasing: suffix[(name.count + 1)...])
      if try child?.rows.add(path, value) == true { return true }
      large = Array(name)
      return false
    }
    if let large {
      writer.key(String(decoding: large, as: UTF8.self))
      let inner = prefix + large + [RowKeys.terminator]
      stack.append(.object(prefix: prefix, next: KeyRange.successor(ofPrefix: inner) ?? inner))
      return try begin(inner, view)
    }
    if let rest {
      stack.append(.object(prefix: prefix, next: rest))
    } else {
      writeChild(&child)
      writer.endObject()
    }
  }

  /// Writes the collected child.
  private mutating func writeChild(_ child: inout (name: [UInt8], rows: BufferedRows)?) {
    guard var done = child else { return }
    child = nil
    writer.key(String(decoding: done.name, as: UTF8.self))
    writer.node(done.rows.node(), .plain)
  }

  /// Writes an array's next element and the nulls before it.
  private mutating func array(
    _ prefix: [UInt8], _ indexes: [Int32], _ done: Int, _ elements: Int, _ view: any ReadView
  ) throws {
    guard done < indexes.count else { return writer.endArray() }
    for _ in elements..<Int(indexes[done]) { writer.null() }
    stack.append(
      .array(prefix: prefix, indexes: indexes, done: done + 1, elements: Int(indexes[done]) + 1))
    try begin(prefix + Array(String(indexes[done]).utf8) + [RowKeys.terminator], view)
  }

  /// The indexes of an object that becomes an array, in order; nil if it remains an object. Reads one row of
  /// each child, up to the first key that is not an index.
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
