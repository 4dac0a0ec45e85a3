module ringtap.invalid/flows

go 1.21
