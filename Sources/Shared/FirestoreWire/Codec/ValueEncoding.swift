// Encodes values of the model directly, without the generated messages.
//
// Invariant: `ValueDecoding` and the generated code read the bytes as the same value. The writer goes from back to
// front, so fields and elements are written in reverse order.

import FirestoreModel

extension ProtobufWriter {
  /// Writes the content of a `Value` message.
  mutating func value(_ value: Value) {
    switch value {
    case .null: field(11, varint: 0)
    case .boolean(let value): field(1, varint: value ? 1 : 0)
    case .integer(let value): field(2, varint: UInt64(bitPattern: value))
    case .double(let value): field(3, double: value)
    case .timestamp(let value): timestamp(value, at: 10)
    case .string(let value): field(17, string: value)
    case .bytes(let value): field(18, bytes: value)
    case .reference(let name):
      let mark = count
      documentName(name)
      lengthPrefix(5, since: mark)
    case .geoPoint(let point):
      let mark = count
      if point.longitude.bitPattern != 0 { field(2, double: point.longitude) }
      if point.latitude.bitPattern != 0 { field(1, double: point.latitude) }
      lengthPrefix(8, since: mark)
    case .array(let elements):
      let mark = count
      array(elements)
      lengthPrefix(9, since: mark)
    case .map(let map):
      let mark = count
      fields(map, at: 1)
      lengthPrefix(6, since: mark)
    case .vector(let numbers): vector(numbers)
    case .pendingServerTimestamp(let pending): self.pending(pending)
    }
  }

  /// Writes the content of an `ArrayValue` message.
  mutating func array(_ elements: [Value]) {
    for element in elements.reversed() {
      let mark = count
      value(element)
      lengthPrefix(1, since: mark)
    }
  }

  /// Writes a map of values as entries of a field.
  mutating func fields(_ map: MapValue, at number: Int) {
    for entry in map.entries.reversed() {
      let entryMark = count
      let valueMark = count
      value(entry.value)
      lengthPrefix(2, since: valueMark)
      field(1, string: entry.key)
      lengthPrefix(number, since: entryMark)
    }
  }

  /// Writes a full document name without building a string.
  mutating func documentName(_ name: DocumentName) {
    for segment in name.path.segments.reversed() {
      write(utf8: segment)
      write(utf8: "/")
    }
    write(utf8: "/documents")
    write(utf8: name.database.database)
    write(utf8: "/databases/")
    write(utf8: name.database.project)
    write(utf8: "projects/")
  }

  /// Writes a `google.protobuf.Timestamp` field.
  mutating func timestamp(_ time: Timestamp, at number: Int) {
    let mark = count
    if time.nanoseconds != 0 { field(2, varint: UInt64(bitPattern: Int64(time.nanoseconds))) }
    if time.seconds != 0 { field(1, varint: UInt64(bitPattern: time.seconds)) }
    lengthPrefix(number, since: mark)
  }

  /// Writes a vector: a map with the mark `__type__` and an array of doubles.
  private mutating func vector(_ numbers: [Double]) {
    let mapMark = count
    let entryMark = count
    let valueMark = count
    let arrayMark = count
    for number in numbers.reversed() {
      let mark = count
      field(3, double: number)
      lengthPrefix(1, since: mark)
    }
    lengthPrefix(9, since: arrayMark)
    lengthPrefix(2, since: valueMark)
    field(1, string: "value")
    lengthPrefix(1, since: entryMark)
    fields(["__type__": "__vector__"], at: 1)
    lengthPrefix(6, since: mapMark)
  }

  /// Writes a pending server timestamp, which occurs only in a client's cache: a map with the mark `__type__`.
  private mutating func pending(_ pending: PendingServerTimestamp) {
    var map: MapValue = [
      "__type__": "server_timestamp", "__local_write_time__": .timestamp(pending.localWriteTime),
    ]
    if let previous = pending.previousValue { map["__previous_value__"] = previous }
    let mark = count
    fields(map, at: 1)
    lengthPrefix(6, since: mark)
  }
}
