// Converts the data of the app's `setData` and `updateData` calls to writes of the model.

import FirestoreModel
import Foundation

extension Write {
  /// Replaces the document.
  static func set(_ data: [String: Any], _ name: DocumentName) -> Write {
    let parsed = UserDataReader.set(data, in: name.database)
    return Write(.update(name, fields: parsed.fields), transforms: parsed.transforms)
  }

  /// Merges all fields of the data, or the named fields. The write has a mask even if the mask is empty, so
  /// that the server does not replace the document.
  static func merge(_ data: [String: Any], _ fields: [Any]?, _ name: DocumentName) -> Write {
    let parsed = UserDataReader.merge(data, only: fields, in: name.database)
    return Write(.update(name, fields: parsed.fields), mask: parsed.mask, transforms: parsed.transforms)
  }

  /// Changes fields of an existing document.
  static func patch(_ data: [AnyHashable: Any], _ name: DocumentName) -> Write {
    let parsed = UserDataReader.update(data, in: name.database)
    return Write(
      .update(name, fields: parsed.fields), mask: parsed.mask, transforms: parsed.transforms,
      precondition: .exists(true))
  }
}
