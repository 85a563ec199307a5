// Encodes documents in the format of the emulator suite's exports: Cloud Datastore entities (EntityProto). Below,
// numbers are protobuf field numbers, and braces contain nested messages.
//
//     entity: 13 key {13 app, 14 path, 23 database} | 14 property… | 15 raw property… | 16 the path's first element
//     path: group 1 {2 collection, 3 number or 4 name}…
//     property: 1 meaning | 3 name | 4 whether an element of an array | 5 value
//     value: 1 integer | 2 boolean | 3 text or bytes | 4 double | group 5 {6 latitude, 7 longitude} |
//            group 12 {13 app, group 14 {15 collection, 16 number or 17 name}…, 23 database}
//
// An array is one property per element. An empty array is a property with a special meaning, before all others. A map
// is an encoded entity without a key. Numeric ids (`__id7__`) are numbers.

import BlockLog
import FirestoreEndpoints
import FirestoreModel
import NIOCore

/// One document of an export.
struct ExportEntity: Equatable {
  /// The type of a property's value, if its encoding does not determine it.
  enum Meaning: UInt64 {
    case timestamp = 7
    case geoPoint = 9
    case bytes = 14
    case entity = 19
    case emptyList = 24
  }

  /// The name of the property with the elements of a vector.
  static let vectorName = "__vector__"

  /// The id of the document's database.
  var database: String
  var path: ResourcePath
  var fields: MapValue

  static func == (a: ExportEntity, b: ExportEntity) -> Bool {
    a.database == b.database && a.fields == b.fields && ResourcePath.compare(a.path, b.path) == .same
  }

  /// Encodes a document as a record. Memory holds one copy of the record, which callers read in chunks.
  /// - Throws: FAILED_PRECONDITION if the record would be too large for an import.
  static func record(of name: DocumentName, _ fields: MapValue) throws(FirestoreError) -> WireWriter {
    // The minimum size is checked first, so that a record that is certainly too large is not encoded.
    if bytes(of: fields, overheadBytes: minimumOverheadBytes) <= BlockLogReader.maximumRecordBytes {
      let entity = writer(of: name, fields)
      if entity.count <= BlockLogReader.maximumRecordBytes { return entity }
    }
    throw .failedPrecondition(
      "The document \(name.path) cannot be exported: it takes more than \(BlockLogReader.maximumRecordBytes) bytes in the "
        + "emulator suite's format, which repeats a field's name for every element of its array. Give the field with "
        + "most elements a shorter name.")
  }

  /// Minimum and maximum bytes of a property in addition to its name and its text.
  private static let minimumOverheadBytes = 8
  private static let maximumOverheadBytes = 48

  /// The estimated bytes of a map's properties.
  private static func bytes(of fields: MapValue, overheadBytes: Int) -> Int {
    fields.entries.reduce(0) { sum, entry in
      let property = entry.key.utf8.count + overheadBytes
      guard case .array(let elements) = entry.value else {
        return sum + property + bytes(of: entry.value, overheadBytes: overheadBytes)
      }
      return elements.reduce(sum + property) { $0 + property + bytes(of: $1, overheadBytes: overheadBytes) }
    }
  }

  private static func bytes(of value: Value, overheadBytes: Int) -> Int {
    switch value {
    case .map(let fields): bytes(of: fields, overheadBytes: overheadBytes)
    case .string(let text): text.utf8.count
    case .bytes(let bytes): bytes.count
    case .vector(let elements): elements.count * (vectorName.utf8.count + overheadBytes)
    case .reference(let name): name.path.segments.reduce(0) { $0 + $1.utf8.count }
    default: 0
    }
  }

  /// Returns the encoded entity of a document.
  static func encode(_ name: DocumentName, _ fields: MapValue) -> [UInt8] {
    Array(writer(of: name, fields).finish().readableBytesView)
  }

  private static func writer(of name: DocumentName, _ fields: MapValue) -> WireWriter {
    // The complete capacity is reserved before encoding, since growth copies the buffer. Its unused pages take no
    // memory.
    let capacity = 1024 + bytes(of: fields, overheadBytes: maximumOverheadBytes)
    var writer = WireWriter(capacity: min(capacity, BlockLogReader.maximumRecordBytes))
    let key = writer.begin(13)
    writer.string(13, app(name.database.project))
    let path = writer.begin(14)
    writer.elements(name.path.segments[...])
    writer.end(path)
    writer.database(name.database.database)
    writer.end(key)
    writer.properties(fields)
    let group = writer.begin(16)
    writer.elements(name.path.segments.prefix(2))
    writer.end(group)
    return writer
  }

  /// The name of a project in exports.
  static func app(_ project: String) -> String { "dev~" + project }
}

extension WireWriter {
  fileprivate mutating func elements(_ segments: ArraySlice<String>) {
    for (collection, id) in pairs(segments) {
      startGroup(1)
      string(2, collection)
      if let number = ResourceID.number(in: id) {
        varint(3, UInt64(bitPattern: number))
      } else {
        string(4, id)
      }
      endGroup(1)
    }
  }

  private func pairs(_ segments: ArraySlice<String>) -> [(String, String)] {
    stride(from: segments.startIndex, to: segments.endIndex - 1, by: 2).map {
      (segments[$0], segments[$0 + 1])
    }
  }

  fileprivate mutating func database(_ id: String) {
    if id != "(default)" { string(23, id) }
  }

  fileprivate mutating func properties(_ fields: MapValue) {
    for entry in fields.entries {
      guard case .array(let elements) = entry.value, elements.isEmpty else { continue }
      emptyList(entry.key)
    }
    for entry in fields.entries {
      guard case .array(let elements) = entry.value else {
        property(entry.key, entry.value, isElement: false)
        continue
      }
      for element in elements { property(entry.key, element, isElement: true) }
    }
  }

  private mutating func emptyList(_ name: String) {
    let open = begin(14)
    varint(1, ExportEntity.Meaning.emptyList.rawValue)
    string(3, name)
    varint(4, 0)
    bytes(5, [])
    end(open)
  }

  private mutating func property(_ name: String, _ value: Value, isElement: Bool) {
    let open = begin(15)
    if let meaning = value.meaning { varint(1, meaning.rawValue) }
    string(3, name)
    varint(4, isElement ? 1 : 0)
    let content = begin(5)
    self.content(value)
    end(content)
    end(open)
  }

  private mutating func content(_ value: Value) {
    switch value {
    case .null: break
    case .boolean(let value): varint(2, value ? 1 : 0)
    case .integer(let value): varint(1, UInt64(bitPattern: value))
    case .double(let value): double(4, value)
    case .timestamp(let time): varint(1, UInt64(bitPattern: time.microseconds))
    case .string(let text): string(3, text)
    case .bytes(let value): bytes(3, value)
    case .reference(let name): reference(name)
    case .geoPoint(let point):
      startGroup(5)
      double(6, point.latitude)
      double(7, point.longitude)
      endGroup(5)
    case .map(let fields): entity { $0.properties(fields) }
    case .vector(let elements):
      entity { writer in
        if elements.isEmpty { writer.emptyList(ExportEntity.vectorName) }
        for element in elements {
          writer.property(ExportEntity.vectorName, .double(element), isElement: true)
        }
      }
    case .array, .pendingServerTimestamp:
      // Arrays do not contain arrays, and stored documents do not contain server timestamps.
      break
    }
  }

  /// Writes an entity without a key.
  private mutating func entity(_ properties: (inout WireWriter) -> Void) {
    let open = begin(3)
    let key = begin(13)
    bytes(13, [])
    bytes(14, [])
    end(key)
    properties(&self)
    bytes(16, [])
    end(open)
  }

  private mutating func reference(_ name: DocumentName) {
    startGroup(12)
    string(13, ExportEntity.app(name.database.project))
    for (collection, id) in pairs(name.path.segments[...]) {
      startGroup(14)
      string(15, collection)
      if let number = ResourceID.number(in: id) {
        varint(16, UInt64(bitPattern: number))
      } else {
        string(17, id)
      }
      endGroup(14)
    }
    database(name.database.database)
    endGroup(12)
  }
}

extension Value {
  /// The meaning of a property with this value.
  fileprivate var meaning: ExportEntity.Meaning? {
    switch self {
    case .timestamp: .timestamp
    case .bytes: .bytes
    case .geoPoint: .geoPoint
    case .map, .vector: .entity
    default: nil
    }
  }
}
