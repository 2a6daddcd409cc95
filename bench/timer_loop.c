/* A bare timer loop: sleeps to 100 us before each instant, spins from then on, and prints how late
   it was, as the thread of a served drive does without a drive.

   timer_loop PERIOD_NS COUNT: prints the 50th and 99th percentile of the lateness, in ns. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static const long long SPIN_NS = 100000;

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int compare(const void *left, const void *right) {
    long long a = *(const long long *)left, b = *(const long long *)right;
    return (a > b) - (a < b);
}

int main(int count_of_words, char **words) {
    if (count_of_words != 3) return 2;
    long long period_ns = atoll(words[1]);
    int count = atoi(words[2]);
    long long *lateness_ns = calloc(count, sizeof *lateness_ns);
    prctl(PR_SET_TIMERSLACK, 1);
    long long due_ns = now_ns();
    for (int number = 0; number < count; number++) {
        due_ns += period_ns;
        long long sleep_ns = due_ns - SPIN_NS;
        struct timespec until = {sleep_ns / 1000000000, sleep_ns % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        while (now_ns() < due_ns) {}
        lateness_ns[number] = now_ns() - due_ns;
        /* As a client of depth 1, the next instant counts from the answer. */
        due_ns = now_ns();
    }
    qsort(lateness_ns, count, sizeof *lateness_ns, compare);
    printf("%lld %lld\n", lateness_ns[count / 2], lateness_ns[count * 99LL / 100]);
    return 0;
}
