// Decodes the entities of exports to documents. Exports of other programs may contain elements that this server does
// not write: indexed properties, and other prefixes of projects.

import FirestoreModel
import FirestoreWire

extension ExportEntity {
  /// Maximum nesting of entities. It exceeds the limit of stored values, so a value that is nested too deeply gets that
  /// limit's error.
  private static let maximumDepth = 40

  private static let invalidRecord = FirestoreError.invalidArgument("Invalid record")

  /// The remaining limits of a document during decoding. They bound its stored size and its memory, independent of the
  /// size of its record.
  private struct DecodingLimit {
    /// Maximum size of a row in the store, in bytes.
    private static let rowBytes = 16 << 20
    /// Minimum bytes of a value in a row, in addition to its text.
    static let valueBytes = 4
    /// Maximum memory of a document. A value takes far more bytes in memory than in a row. For example, a row of 16 MiB
    /// can contain a million maps with a short field, and each map takes some 200 bytes of memory.
    private static let memoryBytes = 512 << 20
    /// Memory of an array or a string in addition to its contents.
    private static let heapOverheadBytes = 48
    /// Maximum length of a string that is stored inline.
    private static let inlineStringBytes = 15

    private var bytes = DecodingLimit.rowBytes
    private var memory = DecodingLimit.memoryBytes

    /// - Parameter count: a lower bound of the bytes in a row.
    mutating func spend(_ count: Int) throws(FirestoreError) {
      bytes -= count
      guard bytes >= 0 else {
        throw .invalidArgument("The document has more than the \(Self.rowBytes) bytes that can be stored.")
      }
    }

    /// Counts an element of an array.
    mutating func spendElement() throws(FirestoreError) {
      try spend(Self.valueBytes)
      try spendMemory(MemoryLayout<Value>.stride)
    }

    /// Counts a field of a map. It takes memory twice: in `Properties` while it is decoded, and in the final
    /// `MapValue`.
    mutating func spendField(_ name: String) throws(FirestoreError) {
      try spendString(name.utf8.count)
      try spend(Self.valueBytes)
      try spendMemory(MemoryLayout<Properties.Field>.stride + MemoryLayout<MapValue.Entry>.stride)
    }

    /// Counts a map or an array.
    mutating func spendContainer() throws(FirestoreError) { try spendMemory(2 * Self.heapOverheadBytes) }

    /// Counts a string, or bytes.
    mutating func spendString(_ count: Int) throws(FirestoreError) {
      try spend(count)
      if count > Self.inlineStringBytes { try spendMemory(Self.heapOverheadBytes + count) }
    }

    private mutating func spendMemory(_ count: Int) throws(FirestoreError) {
      memory -= count
      guard memory >= 0 else {
        throw .invalidArgument(
          "The document takes more than the \(Self.memoryBytes) bytes of memory that it may have while it is read."
        )
      }
    }
  }

  /// Decodes a document's entity.
  /// - Parameter project: the project of the import, to which references in indexed properties point.
  init(_ bytes: [UInt8], into project: String) throws(FirestoreError) {
    let result = bytes.withUnsafeBytes { raw -> Result<ExportEntity, FirestoreError> in
      do throws(FirestoreError) {
        return .success(try Self.read(ProtobufReader(raw), project))
      } catch {
        return .failure(error)
      }
    }
    self = try result.get()
  }

  private static func read(_ message: ProtobufReader, _ project: String) throws(FirestoreError)
    -> ExportEntity
  {
    var reader = message
    var entity = ExportEntity(database: "(default)", path: .root, fields: MapValue())
    var properties = Properties()
    var limit = DecodingLimit()
    while let tag = try reader.nextTag() {
      switch tag.field {
      case 13:
        var key = try reader.message(tag)
        try entity.readKey(&key, &limit)
      case 14, 15:
        try properties.read(
          try reader.message(tag), tag.field == 14 ? project : nil, depth: 0, &limit)
      default: try reader.skip(tag)
      }
    }
    guard entity.path.isDocument else { throw invalidRecord }
    entity.fields = properties.map
    return entity
  }

  private mutating func readKey(
    _ reader: inout ProtobufReader, _ limit: inout DecodingLimit
  ) throws(FirestoreError) {
    var segments: [String] = []
    while let tag = try reader.nextTag() {
      switch tag.field {
      case 14:
        var path = try reader.message(tag)
        while let tag = try path.nextTag() {
          guard tag.type == .groupStart else {
            try path.skip(tag)
            continue
          }
          segments += try Self.element(&path, fields: (2, 3, 4), &limit)
        }
      case 23: database = try reader.string(tag)
      default: try reader.skip(tag)
      }
    }
    path = ResourcePath(segments)
  }

  /// Returns the collection and the id of one element of a path, up to the end of its group.
  private static func element(
    _ reader: inout ProtobufReader, fields: (type: Int, id: Int, name: Int), _ limit: inout DecodingLimit
  ) throws(FirestoreError) -> [String] {
    var collection = ""
    var id = ""
    while let tag = try reader.nextTag(), tag.type != .groupEnd {
      switch tag.field {
      case fields.type: collection = try reader.string(tag)
      case fields.id: id = "__id\(Int64(bitPattern: try reader.varint(tag)))__"
      case fields.name: id = try reader.string(tag)
      default: try reader.skip(tag)
      }
    }
    // The row contains a slash before the collection and before the document ID.
    try limit.spend(2)
    try limit.spendString(collection.utf8.count)
    try limit.spendString(id.utf8.count)
    return [collection, id]
  }

  /// The properties of an entity during decoding.
  private struct Properties {
    fileprivate struct Field {
      var name: String
      /// The value of a field that is not an array.
      var single = Value.null
      /// The elements of an array so far. They are not kept in a `Value`, since appending would copy it for each
      /// element.
      var elements: [Value] = []
      var isArray = false

      var value: Value { isArray ? .array(elements) : single }
    }

    private var fields: [Field] = []

    /// The fields as a map, even if they encode a vector (see `value`).
    var map: MapValue { MapValue(fields.map { ($0.name, $0.value) }) }

    var value: Value {
      if fields.count == 1, let field = fields.first, field.name == ExportEntity.vectorName, field.isArray {
        let doubles = field.elements.compactMap { if case .double(let value) = $0 { value } else { nil } }
        if doubles.count == field.elements.count { return .vector(doubles) }
      }
      return .map(map)
    }

    mutating func read(
      _ message: ProtobufReader, _ project: String?, depth: Int, _ limit: inout DecodingLimit
    ) throws(FirestoreError) {
      guard depth < ExportEntity.maximumDepth else { throw ExportEntity.invalidRecord }
      var reader = message
      var meaning: Meaning?
      var name = ""
      var isElement = false
      var content: ProtobufReader?
      while let tag = try reader.nextTag() {
        switch tag.field {
        case 1: meaning = Meaning(rawValue: try reader.varint(tag))
        case 3: name = try reader.string(tag)
        case 4: isElement = try reader.varint(tag) != 0
        case 5: content = try reader.message(tag)
        default: try reader.skip(tag)
        }
      }
      guard let content else { throw ExportEntity.invalidRecord }
      if meaning == .emptyList { return try add(Field(name: name, isArray: true), &limit) }
      let value = try ExportEntity.value(content, meaning, project, depth: depth, &limit)
      guard isElement else { return try add(Field(name: name, single: value), &limit) }
      guard let last = fields.indices.last, fields[last].isArray,
        fields[last].name.utf8.elementsEqual(name.utf8)
      else { return try add(Field(name: name, elements: [value], isArray: true), &limit) }
      try limit.spendElement()
      fields[last].elements.append(value)
    }

    private mutating func add(_ field: Field, _ limit: inout DecodingLimit) throws(FirestoreError) {
      if fields.isEmpty { try limit.spendContainer() }
      if !field.elements.isEmpty { try limit.spendContainer() }
      try limit.spendField(field.name)
      fields.append(field)
    }
  }

  private static func value(
    _ content: ProtobufReader, _ meaning: Meaning?, _ project: String?, depth: Int,
    _ limit: inout DecodingLimit
  ) throws(FirestoreError) -> Value {
    var reader = content
    var value = Value.null
    while let tag = try reader.nextTag() {
      switch (tag.field, meaning) {
      case (1, .timestamp):
        value = .timestamp(Timestamp(microseconds: Int64(bitPattern: try reader.varint(tag))))
      case (1, _): value = .integer(Int64(bitPattern: try reader.varint(tag)))
      case (2, _): value = .boolean(try reader.varint(tag) != 0)
      case (3, .bytes):
        let bytes = try reader.bytes(tag)
        try limit.spendString(bytes.count)
        value = .bytes(bytes)
      case (3, .entity): value = try entity(try reader.message(tag), depth: depth + 1, &limit)
      case (3, _):
        let text = try reader.string(tag)
        try limit.spendString(text.utf8.count)
        value = .string(text)
      case (4, _): value = .double(try reader.double(tag))
      case (5, _): value = .geoPoint(try point(&reader))
      case (12, _): value = .reference(try reference(&reader, project, &limit))
      default: try reader.skip(tag)
      }
    }
    return value
  }

  private static func entity(
    _ message: ProtobufReader, depth: Int, _ limit: inout DecodingLimit
  ) throws(FirestoreError) -> Value {
    var reader = message
    var properties = Properties()
    while let tag = try reader.nextTag() {
      if tag.field == 14 || tag.field == 15 {
        try properties.read(try reader.message(tag), nil, depth: depth, &limit)
      } else {
        try reader.skip(tag)
      }
    }
    return properties.value
  }

  private static func point(_ reader: inout ProtobufReader) throws(FirestoreError) -> GeoPoint {
    var point = GeoPoint(latitude: 0, longitude: 0)
    while let tag = try reader.nextTag(), tag.type != .groupEnd {
      switch tag.field {
      case 6: point.latitude = try reader.double(tag)
      case 7: point.longitude = try reader.double(tag)
      default: try reader.skip(tag)
      }
    }
    return point
  }

  private static func reference(
    _ reader: inout ProtobufReader, _ project: String?, _ limit: inout DecodingLimit
  ) throws(FirestoreError) -> DocumentName {
    var app = ""
    var database = "(default)"
    var segments: [String] = []
    while let tag = try reader.nextTag(), tag.type != .groupEnd {
      switch tag.field {
      case 13: app = try reader.string(tag)
      case 14: segments += try element(&reader, fields: (15, 16, 17), &limit)
      case 23: database = try reader.string(tag)
      default: try reader.skip(tag)
      }
    }
    let parts = app.split(separator: "~", maxSplits: 1, omittingEmptySubsequences: false)
    let name = DatabaseName(project: project ?? parts.last.map(String.init) ?? "", database: database)
    // A record can contain invalid names, such as an empty project or an id with a slash. Clients could not read such
    // a document.
    guard let document = DocumentName(database: name, path: ResourcePath(segments)),
      try DocumentName(parsing: document.description) == document
    else { throw invalidRecord }
    return document
  }
}
