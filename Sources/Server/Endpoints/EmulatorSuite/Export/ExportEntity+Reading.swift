// Entities of exports back to documents. What a strange export may hold beyond ours is read as well: indexed properties,
// and projects under other prefixes.

import FirestoreModel
import FirestoreWire

extension ExportEntity {
  /// Levels of entities inside each other that are read: above the model's limit, which has a better message.
  private static let depth = 40

  private static let broken = FirestoreError.invalidArgument("Invalid record")

  /// What a document may still hold while it is read: what it decodes to is bounded by what can be stored, and by what it
  /// takes in memory, however large its record is.
  private struct Allowance {
    /// A row of the store has no more bytes.
    private static let rowBytes = 16 << 20
    /// There, every value takes at least as many beside its text.
    static let valueBytes = 4
    /// In memory a value takes far more: maps with one short field, of which 16 MiB hold a million, some 200 bytes each.
    private static let memoryBytes = 512 << 20
    /// What the memory of an array or a text has beside its contents.
    private static let heapBytes = 48
    /// The longest text that lies within its value.
    private static let inlineText = 15

    private var bytes = Allowance.rowBytes
    private var memory = Allowance.memoryBytes

    /// - Parameter count: no more than it takes in a row.
    mutating func take(_ count: Int) throws(FirestoreError) {
      bytes -= count
      guard bytes >= 0 else {
        throw .invalidArgument("The document has more than the \(Self.rowBytes) bytes that can be stored.")
      }
    }

    /// Counts an element of an array.
    mutating func takeElement() throws(FirestoreError) {
      try take(Self.valueBytes)
      try hold(MemoryLayout<Value>.stride)
    }

    /// Counts a field of a map, which is read into one form and kept in another.
    mutating func takeField(_ name: String) throws(FirestoreError) {
      try takeText(name.utf8.count)
      try take(Self.valueBytes)
      try hold(MemoryLayout<Properties.Field>.stride + MemoryLayout<MapValue.Entry>.stride)
    }

    /// Counts a map or an array.
    mutating func takeList() throws(FirestoreError) { try hold(2 * Self.heapBytes) }

    /// Counts text, or bytes.
    mutating func takeText(_ count: Int) throws(FirestoreError) {
      try take(count)
      if count > Self.inlineText { try hold(Self.heapBytes + count) }
    }

    private mutating func hold(_ count: Int) throws(FirestoreError) {
      memory -= count
      guard memory >= 0 else {
        throw .invalidArgument(
          "The document takes more than the \(Self.memoryBytes) bytes of memory that it may have while it is read."
        )
      }
    }
  }

  /// Reads a document's entity.
  /// - Parameter project: the project that is imported into; references in indexed properties lead there.
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
    var allowance = Allowance()
    while let tag = try reader.nextTag() {
      switch tag.field {
      case 13:
        var key = try reader.message(tag)
        try entity.readKey(&key, &allowance)
      case 14, 15:
        try properties.read(
          try reader.message(tag), tag.field == 14 ? project : nil, depth: 0, &allowance)
      default: try reader.skip(tag)
      }
    }
    guard entity.path.isDocument else { throw broken }
    entity.fields = properties.map
    return entity
  }

  private mutating func readKey(
    _ reader: inout ProtobufReader, _ allowance: inout Allowance
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
          segments += try Self.element(&path, fields: (2, 3, 4), &allowance)
        }
      case 23: database = try reader.string(tag)
      default: try reader.skip(tag)
      }
    }
    path = ResourcePath(segments)
  }

  /// The collection and the id of one element of a path, to the end of its group.
  private static func element(
    _ reader: inout ProtobufReader, fields: (type: Int, id: Int, name: Int), _ allowance: inout Allowance
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
    // With their slashes.
    try allowance.take(2)
    try allowance.takeText(collection.utf8.count)
    try allowance.takeText(id.utf8.count)
    return [collection, id]
  }

  /// The properties of an entity as they are read.
  private struct Properties {
    fileprivate struct Field {
      var name: String
      /// What a field holds that is no array.
      var single = Value.null
      /// What an array holds so far. Not as a value: taken out of one to be added to, it would be copied each time.
      var elements: [Value] = []
      var isArray = false

      var value: Value { isArray ? .array(elements) : single }
    }

    private var fields: [Field] = []

    /// The fields; a vector's are its elements.
    var map: MapValue { MapValue(fields.map { ($0.name, $0.value) }) }

    var value: Value {
      if fields.count == 1, let field = fields.first, field.name == ExportEntity.vectorName, field.isArray {
        let doubles = field.elements.compactMap { if case .double(let value) = $0 { value } else { nil } }
        if doubles.count == field.elements.count { return .vector(doubles) }
      }
      return .map(map)
    }

    mutating func read(
      _ message: ProtobufReader, _ project: String?, depth: Int, _ allowance: inout Allowance
    ) throws(FirestoreError) {
      guard depth < ExportEntity.depth else { throw ExportEntity.broken }
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
      guard let content else { throw ExportEntity.broken }
      if meaning == .emptyList { return try add(Field(name: name, isArray: true), &allowance) }
      let value = try ExportEntity.value(content, meaning, project, depth: depth, &allowance)
      guard isElement else { return try add(Field(name: name, single: value), &allowance) }
      guard let last = fields.indices.last, fields[last].isArray,
        fields[last].name.utf8.elementsEqual(name.utf8)
      else { return try add(Field(name: name, elements: [value], isArray: true), &allowance) }
      try allowance.takeElement()
      fields[last].elements.append(value)
    }

    private mutating func add(_ field: Field, _ allowance: inout Allowance) throws(FirestoreError) {
      if fields.isEmpty { try allowance.takeList() }
      if !field.elements.isEmpty { try allowance.takeList() }
      try allowance.takeField(field.name)
      fields.append(field)
    }
  }

  private static func value(
    _ content: ProtobufReader, _ meaning: Meaning?, _ project: String?, depth: Int,
    _ allowance: inout Allowance
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
        try allowance.takeText(bytes.count)
        value = .bytes(bytes)
      case (3, .entity): value = try entity(try reader.message(tag), depth: depth + 1, &allowance)
      case (3, _):
        let text = try reader.string(tag)
        try allowance.takeText(text.utf8.count)
        value = .string(text)
      case (4, _): value = .double(try reader.double(tag))
      case (5, _): value = .geoPoint(try point(&reader))
      case (12, _): value = .reference(try reference(&reader, project, &allowance))
      default: try reader.skip(tag)
      }
    }
    return value
  }

  private static func entity(
    _ message: ProtobufReader, depth: Int, _ allowance: inout Allowance
  ) throws(FirestoreError) -> Value {
    var reader = message
    var properties = Properties()
    while let tag = try reader.nextTag() {
      if tag.field == 14 || tag.field == 15 {
        try properties.read(try reader.message(tag), nil, depth: depth, &allowance)
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
    _ reader: inout ProtobufReader, _ project: String?, _ allowance: inout Allowance
  ) throws(FirestoreError) -> DocumentName {
    var app = ""
    var database = "(default)"
    var segments: [String] = []
    while let tag = try reader.nextTag(), tag.type != .groupEnd {
      switch tag.field {
      case 13: app = try reader.string(tag)
      case 14: segments += try element(&reader, fields: (15, 16, 17), &allowance)
      case 23: database = try reader.string(tag)
      default: try reader.skip(tag)
      }
    }
    let parts = app.split(separator: "~", maxSplits: 1, omittingEmptySubsequences: false)
    let name = DatabaseName(project: project ?? parts.last.map(String.init) ?? "", database: database)
    // A record can spell what no name can, such as an empty project or a slash within an id. Clients could not read it.
    guard let document = DocumentName(database: name, path: ResourcePath(segments)),
      try DocumentName(parsing: document.description) == document
    else { throw broken }
    return document
  }
}
