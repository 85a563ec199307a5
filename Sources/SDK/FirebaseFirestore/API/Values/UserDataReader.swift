// Converts the data that an app writes to values of the model.
//
// Invariant: the server can store the values. They contain no nested arrays, reserved names or references to
// other databases. Other data stops the program with a message that names the field, because the methods that
// take data do not throw.

import FirebaseCore
import FirebaseSharedSwift
import FirestoreModel
import Foundation

/// Field values and transforms of one write.
struct ParsedFields {
  var fields = MapValue()
  /// The fields that the write changes, in the order of the data. Fields with transforms are not included.
  var mask: [ModelFieldPath] = []
  var transforms: [FieldTransform] = []
}

struct UserDataReader {
  /// The purpose of the data. It determines which sentinels are allowed.
  enum Purpose: Equatable {
    case set
    case mergeSet
    case update
    /// An operand of a query or an element of an array transform. No sentinels are allowed. The string names
    /// the app's call in error messages.
    case argument(String)
  }

  let database: DatabaseName?
  let purpose: Purpose
  private var parsed = ParsedFields()

  private init(_ database: DatabaseName?, _ purpose: Purpose) {
    self.database = database
    self.purpose = purpose
  }

  // MARK: Whole writes

  static func set(_ data: [String: Any], in database: DatabaseName) -> ParsedFields {
    var reader = UserDataReader(database, .set)
    reader.parsed.fields = reader.map(data, at: nil, inArray: false)
    return reader.parsed
  }

  /// Converts data for a merge. If `fields` is nil, every field of the data is merged.
  static func merge(_ data: [String: Any], only fields: [Any]?, in database: DatabaseName) -> ParsedFields {
    var reader = UserDataReader(database, .mergeSet)
    reader.parsed.fields = reader.map(data, at: nil, inArray: false)
    var parsed = reader.parsed
    guard let fields else { return parsed }
    let named = fields.map { FieldPath.parse($0, in: "setData(_:mergeFields:)") }
    for path in named {
      let isGiven =
        parsed.fields.value(at: path) != nil || parsed.mask.contains { $0.hasPrefix(path) }
        || parsed.transforms.contains { $0.field.hasPrefix(path) }
      if !isGiven {
        failInvalidArgument(
          "Field '\(path)' is specified in your field mask but missing from your input data.")
      }
    }
    func isCovered(_ path: ModelFieldPath) -> Bool { named.contains { path.hasPrefix($0) } }
    parsed.transforms = parsed.transforms.filter { isCovered($0.field) }
    let transformed = Set(parsed.transforms.map(\.field))
    parsed.mask = named.filter { !transformed.contains($0) }
    parsed.fields = parsed.fields.projected(to: FieldMask(parsed.mask))
    return parsed
  }

  static func update(_ data: [AnyHashable: Any], in database: DatabaseName) -> ParsedFields {
    var reader = UserDataReader(database, .update)
    var paths: [ModelFieldPath] = []
    var entries: [(ModelFieldPath, Any)] = []
    for (key, value) in data { entries.append((FieldPath.parse(key, in: "updateData(_:)"), value)) }
    // Dictionaries are unordered. A fixed order makes equal calls send equal requests.
    entries.sort { $0.0 < $1.0 }
    for (path, value) in entries {
      if let clash = paths.first(where: { path.hasPrefix($0) }) {
        failInvalidArgument("Field path '\(path)' is given together with '\(clash)', which contains it.")
      }
      paths.append(path)
      for name in path.segments { UserDataReader.check(name: name) }
      if let sentinel = unwrapped(value) as? FieldValue {
        reader.recordSentinel(sentinel, at: path, inArray: false, isTopLevel: true)
        continue
      }
      if let value = reader.value(value, at: path, inArray: false) {
        reader.parsed.fields.set(value, at: path)
        reader.parsed.mask.append(path)
      }
    }
    return reader.parsed
  }

  /// Converts a query's operand or cursor value.
  static func argument(_ value: Any, of call: String, in database: DatabaseName) -> Value {
    var reader = UserDataReader(database, .argument(call))
    guard let value = reader.value(value, at: nil, inArray: false) else {
      failInvalidArgument("\(call) does not accept FieldValue sentinels")
    }
    return value
  }

  /// Converts the elements of an array transform.
  static func elements(_ elements: [Any], of call: String) -> [Value] {
    var reader = UserDataReader(nil, .argument(call))
    return elements.map { element in
      if unwrapped(element) is [Any] { failInvalidArgument("Nested arrays are not supported") }
      guard let value = reader.value(element, at: nil, inArray: true) else {
        failInvalidArgument("\(call) does not accept FieldValue sentinels")
      }
      return value
    }
  }

  // MARK: Parts

  private static func check(name: String) {
    if name.isEmpty { failInvalidArgument("Document fields must not be empty") }
    if ResourceID.isReserved(name) {
      failInvalidArgument("Document fields cannot begin and end with \"__\" (found in field \(name))")
    }
  }

  private static func fieldSuffix(_ path: ModelFieldPath?) -> String {
    path.map { " (found in field \($0))" } ?? ""
  }

  private mutating func map(_ data: [String: Any], at path: ModelFieldPath?, inArray: Bool) -> MapValue {
    var entries: [MapValue.Entry] = []
    for name in data.keys.sorted() {
      guard let raw = data[name] else { continue }
      UserDataReader.check(name: name)
      let child = path?.appending(name) ?? ModelFieldPath(field: name)
      if let value = value(raw, at: child, inArray: inArray) {
        entries.append(MapValue.Entry(key: name, value: value))
        if purpose == .mergeSet, !inArray {
          if case .map(let map) = value {
            // The mask contains a map that is empty in the app's data, so that the write stores it. It does not
            // contain a map that is empty because all its members are sentinels.
            if map.isEmpty, UserDataReader.isEmptyMap(raw) { parsed.mask.append(child) }
          } else {
            parsed.mask.append(child)
          }
        }
      }
    }
    return MapValue(unsorted: entries)
  }

  private static func isEmptyMap(_ raw: Any) -> Bool {
    (unwrapped(raw) as? [AnyHashable: Any])?.isEmpty ?? false
  }

  /// Converts one value. For a sentinel it records the sentinel and returns nil.
  private mutating func value(_ raw: Any, at path: ModelFieldPath?, inArray: Bool) -> Value? {
    let raw = UserDataReader.unwrapped(raw)
    if let scalar = scalar(raw, at: path) { return scalar }
    switch raw {
    case let sentinel as FieldValue:
      recordSentinel(sentinel, at: path, inArray: inArray, isTopLevel: path?.count == 1)
      return nil
    case let data as [String: Any]: return .map(map(data, at: path, inArray: inArray))
    case let data as [AnyHashable: Any]:
      var named: [String: Any] = [:]
      for (key, value) in data {
        guard let name = key.base as? String else {
          failInvalidArgument(
            "Map keys must be Strings, not \(type(of: key.base))\(UserDataReader.fieldSuffix(path))")
        }
        named[name] = value
      }
      return .map(map(named, at: path, inArray: inArray))
    case let set as Set<AnyHashable>: return array(Array(set), at: path, inArray)
    case let list as [Any]: return array(list, at: path, inArray)
    default:
      failInvalidArgument("Unsupported type: \(type(of: raw))\(UserDataReader.fieldSuffix(path))")
    }
  }

  private mutating func array(_ list: [Any], at path: ModelFieldPath?, _ inArray: Bool) -> Value {
    .array(
      list.map { element in
        let element = UserDataReader.unwrapped(element)
        // A map inside an array may contain arrays. The list of an `in` filter may contain arrays too.
        if element is [Any], !isOperandList(path, inArray) {
          failInvalidArgument("Nested arrays are not supported")
        }
        guard let value = value(element, at: path, inArray: true) else { return .null }
        return value
      })
  }

  private func isOperandList(_ path: ModelFieldPath?, _ inArray: Bool) -> Bool {
    if case .argument = purpose { return path == nil && !inArray }
    return false
  }

  private func scalar(_ raw: Any, at path: ModelFieldPath?) -> Value? {
    switch raw {
    case is NSNull: return .null
    case let string as String: return .string(string)
    case let number as NSNumber: return UserDataReader.number(number, at: path)
    case let timestamp as Timestamp:
      return .timestamp(
        ModelTimestamp(seconds: timestamp.seconds, nanoseconds: timestamp.nanoseconds)
          .truncatedToMicroseconds)
    case let date as Date: return scalar(Timestamp(date: date), at: path)
    case let data as Data: return .bytes([UInt8](data))
    case let point as GeoPoint:
      return .geoPoint(ModelGeoPoint(latitude: point.latitude, longitude: point.longitude))
    case let vector as VectorValue: return .vector(vector.array)
    case let reference as DocumentReference:
      if let database, reference.name.database != database {
        failInvalidArgument(
          "Document Reference is for database \(reference.name.database) but should be for database"
            + " \(database)\(UserDataReader.fieldSuffix(path))")
      }
      return .reference(reference.name)
    default: return nil
    }
  }

  private static func number(_ number: NSNumber, at path: ModelFieldPath?) -> Value {
    if number.isBoolean { return .boolean(number.boolValue) }
    if number.holdsFloat { return .double(number.doubleValue) }
    if number.holdsUnsigned64, number.uint64Value > UInt64(Int64.max) {
      failInvalidArgument("NSNumber (\(number)) is too large\(fieldSuffix(path))")
    }
    return .integer(number.int64Value)
  }

  private mutating func recordSentinel(
    _ sentinel: FieldValue, at path: ModelFieldPath?, inArray: Bool, isTopLevel: Bool
  ) {
    let name = sentinel.methodName
    if case .argument(let call) = purpose { failInvalidArgument("\(call): \(name) cannot be used here") }
    guard let path, !inArray else {
      failInvalidArgument(
        "\(name) is not currently supported inside arrays\(UserDataReader.fieldSuffix(path))")
    }
    switch sentinel.kind {
    case .delete:
      switch purpose {
      case .mergeSet: parsed.mask.append(path)
      case .update where isTopLevel: parsed.mask.append(path)
      case .update:
        failInvalidArgument(
          "FieldValue.delete() can only appear at the top level of your update data (\(path))")
      default:
        failInvalidArgument(
          "FieldValue.delete() can only be used with updateData() and setData() with merge: true (\(path))")
      }
    case .serverTimestamp: parsed.transforms.append(FieldTransform(path, .serverTimestamp))
    case .number(let operation): parsed.transforms.append(FieldTransform(path, operation))
    case .arrayUnion(let values): parsed.transforms.append(FieldTransform(path, .appendMissing(values)))
    case .arrayRemove(let values): parsed.transforms.append(FieldTransform(path, .removeAll(values)))
    }
  }

  /// Unwraps an optional that is inside an `Any`. An empty optional becomes null.
  static func unwrapped(_ value: Any) -> Any {
    if let optional = value as? any HiddenOptional { return optional.content.map(unwrapped) ?? NSNull() }
    return value
  }
}

/// Detects an optional inside an `Any`. Comparing such an `Any` with nil does not detect an empty optional.
private protocol HiddenOptional {
  var content: Any? { get }
}

extension Optional: HiddenOptional {
  fileprivate var content: Any? { self }
}
