// Matches errors against Firestore's codes in files that import only `Firebase`. An operator cannot be
// exported by name, so this module declares its own. FirebaseFirestore's operator is preferred where both are
// visible.

import Foundation

extension FirestoreErrorCode.Code {
  /// Allows `switch` and `catch` to match a code against any error.
  @_disfavoredOverload
  public static func ~= (match: FirestoreErrorCode.Code, error: any Error) -> Bool {
    let object = error as NSError
    return object.domain == FirestoreErrorDomain && object.code == match.rawValue
  }
}
