// Exports FirebaseAuth from `import Firebase`. It has no name in common with the two databases.

@_exported import FirebaseAuth
