// Exports `Timestamp` with FirebaseFirestore, so that apps need no other import, as with Google's SDK.

@_exported public import class FirebaseCore.Timestamp
