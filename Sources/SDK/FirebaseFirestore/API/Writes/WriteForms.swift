// The forms of writes: setData, merges, updateData and verification as the model's writes.

import FirestoreModel
import Foundation

extension Write {
  /// Replaces the document.
  static func set(_ data: [String: Any], _ name: DocumentName) -> Write {
    let parsed = UserDataReader.set(data, in: name.database)
    return Write(.update(name, fields: parsed.fields), transforms: parsed.transforms)
  }

  /// Merges all given fields, or the named ones. An empty mask is sent too, so that the document is not
  /// replaced.
  static func merge(_ data: [String: Any], _ fields: [Any]?, _ name: DocumentName) -> Write {
    let parsed = UserDataReader.merge(data, only: fields, in: name.database)
    return Write(.update(name, fields: parsed.fields), mask: parsed.mask, transforms: parsed.transforms)
  }

  /// Changes fields of a document that has to exist.
  static func patch(_ data: [AnyHashable: Any], _ name: DocumentName) -> Write {
    let parsed = UserDataReader.update(data, in: name.database)
    return Write(
      .update(name, fields: parsed.fields), mask: parsed.mask, transforms: parsed.transforms,
      precondition: .exists(true))
  }
}
