// Generates random index configurations for `RandomModel` (random documents and queries), and decodes the index that an
// error's link describes.

import FirestoreModel
import Foundation
import OrderedStore

@testable import FirestoreEngine

extension RandomModel {
  mutating func indexes() -> DatabaseIndexConfiguration {
    var configuration = DatabaseIndexConfiguration()
    for _ in 0..<Int.random(in: 0...4, using: &random) {
      let lists = schema.lists.map { FieldPath(field: $0) }
      var fields = schema.paths.filter { !lists.contains($0) }.shuffled(using: &random)
        .prefix(pick([1, 2, 2, 3])).map {
          DatabaseIndexConfiguration.Field($0, pick([.ascending, .descending]))
        }
      if !lists.isEmpty, chance(30) {
        fields.insert(.init(pick(lists), .contains), at: chance(80) ? 0 : fields.count)
      }
      configuration.indexes.append(
        .init(
          pick(["c", "c", "c", "d"]), pick([.collection, .collection, .collectionGroup]), fields,
          nameDirection: chance(20) ? pick([.ascending, .descending]) : nil))
    }
    for _ in 0..<pick([0, 0, 1, 2]) {
      let field =
        chance(15)
        ? nil : chance(20) && !schema.maps.isEmpty ? FieldPath(field: schema.maps[0].field) : self.field()
      var indexes: [DatabaseIndexConfiguration.Override.Index] = []
      for mode in [DatabaseIndexConfiguration.Mode.ascending, .descending, .contains] where chance(40) {
        indexes.append(.init(field != nil && chance(40) ? .collectionGroup : .collection, mode))
      }
      configuration.overrides.append(.init(pick(["c", "c", "d"]), field, indexes))
    }
    return configuration
  }
}

extension DatabaseIndexConfiguration {
  /// Adds the composite index that a query needs.
  mutating func add(for query: Query) throws {
    guard let prepared = try? PreparedQuery(query, .standard) else { return }
    let planner = Planner(prepared, .automatic, at: Version(microseconds: .max))
    guard case .composite(let index, _)? = planner.missingIndex else { return }
    let fields = index.parts.map { part in
      Field(
        part.field, part.mode == .contains ? .contains : part.mode == .ascending ? .ascending : .descending)
    }
    indexes.append(
      Index(
        index.collectionID, index.scope, fields, nameDirection: index.namesDescend ? .descending : .ascending)
    )
  }

  /// Adds the index that an error's link creates. Returns false if the message has no link.
  mutating func add(linkedFrom message: String) -> Bool {
    guard let start = message.range(of: #"create_(composite|exemption)="#, options: .regularExpression) else {
      return false
    }
    let isExemption = message[start].contains("exemption")
    var text = message[start.upperBound...].replacingOccurrences(of: "-", with: "+")
      .replacingOccurrences(of: "_", with: "/")
    while !text.count.isMultiple(of: 4) { text += "=" }
    guard let data = Data(base64Encoded: text) else { return false }
    var rest = [UInt8](data)[...]
    var name = ""
    var scope = Scope.collection
    var fields: [(String, UInt8, UInt8)] = []
    while let tag = rest.popFirst() {
      switch tag {
      case 0x0A: name = String(decoding: rest.field, as: UTF8.self)
      case 0x10: scope = rest.popFirst() == 2 ? .collectionGroup : .collection
      case 0x1A:
        var part = rest.field
        _ = part.popFirst()
        let path = String(decoding: part.field, as: UTF8.self)
        fields.append((path, part.popFirst() ?? 0, part.popFirst() ?? 0))
      default: return false
      }
    }
    guard let id = name.split(separator: "/").dropLast(2).last.map(String.init) else { return false }
    var direction: StructuredQuery.Direction?
    if fields.last?.0 == "__name__" { direction = fields.popLast()?.2 == 2 ? .descending : .ascending }
    let modes = fields.compactMap { path, kind, value -> Field? in
      guard let field = try? FieldPath(parsing: path) else { return nil }
      return Field(field, kind == 0x18 ? .contains : value == 2 ? .descending : .ascending)
    }
    if isExemption, let field = modes.first {
      let existing = overrides.firstIndex { $0.collectionID == id && $0.field == field.path }
      if let existing {
        overrides[existing].indexes.append(.init(scope, field.mode))
      } else {
        overrides.append(
          .init(
            id, field.path,
            [.init(.collection, .ascending), .init(.collection, .contains), .init(scope, field.mode)]))
      }
    } else {
      indexes.append(Index(id, scope, modes, nameDirection: direction))
    }
    return true
  }
}

extension ArraySlice where Element == UInt8 {
  /// Removes and returns the next length-delimited field.
  fileprivate var field: ArraySlice<UInt8> {
    mutating get {
      var length = 0
      var shift = 0
      while let byte = popFirst() {
        length |= Int(byte & 0x7F) << shift
        shift += 7
        if byte < 0x80 { break }
      }
      defer { self = dropFirst(length) }
      return prefix(length)
    }
  }
}
